//! Signs in with what is in a Secret that a vault names, and says so.

use std::sync::Arc;

use serde_json::json;
use windlass::k8s_openapi::api::rbac::v1::ClusterRole;
use windlass::kube::Api;
use windlass::kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use windlass::prelude::*;

use super::Bug;
use super::widget::{ignore, map};

const MANAGER: &str = "gallery";

/// Something that is opened with a password.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "gallery.example.com", version = "v1", kind = "Vault", status = VaultStatus)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VaultSpec {
    pub secret_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_namespace: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
pub(crate) struct VaultStatus {
    pub phase: String,
    pub note: String,
}

#[derive(Default)]
pub(crate) struct Vaults {
    pub bug: Bug,
}

/// What a vault is opened with, or why it is not.
enum Password {
    Found(String),
    Missing(String),
}

impl Reconcile for Vaults {
    type Resource = Vault;

    async fn reconcile(&self, seen: Arc<Vault>, cx: &Context<Vault>) -> Result<Action, Error> {
        let home = seen.namespace().unwrap_or_default();
        let vaults: Api<Vault> = Api::namespaced(cx.client(), &home);
        let found = vaults.get_opt(&seen.name_any()).await?.filter(|found| found.metadata.uid == seen.metadata.uid);
        let Some(vault) = found.filter(|vault| vault.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::Await);
        };
        let (phase, note) = match self.password(&vault, &home, cx).await? {
            Password::Missing(why) => {
                close(&vault, &home, cx).await?;
                ("Waiting", why)
            }
            Password::Found(password) => {
                self.open(&vault, &home, &password, cx).await?;
                let shown =
                    if self.bug == Bug::SecretInStatus { format!("opened with {password}") } else { String::new() };
                ("Ready", shown)
            }
        };
        let status = json!({"phase": phase, "note": note, "observedGeneration": vault.metadata.generation});
        let patch = Patch::Merge(json!({"status": status}));
        ignore(404, vaults.patch_status(&vault.name_any(), &PatchParams::default(), &patch).await)?;
        Ok(if phase == "Ready" { Action::Await } else { Action::Recheck(std::time::Duration::from_secs(30)) })
    }
}

/// A vault that is not open has no map.
async fn close(vault: &Vault, home: &str, cx: &Context<Vault>) -> Result<(), Error> {
    let maps: Api<ConfigMap> = Api::namespaced(cx.client(), home);
    let found = maps.get_opt(&vault.name_any()).await?;
    let is_owned =
        |map: &ConfigMap| map.owner_references().iter().any(|owner| Some(&owner.uid) == vault.metadata.uid.as_ref());
    match found.filter(is_owned) {
        Some(map) => {
            let exactly = Preconditions { uid: map.metadata.uid, resource_version: None };
            let params = DeleteParams::background().preconditions(exactly);
            ignore(404, maps.delete(&vault.name_any(), &params).await)
        }
        None => Ok(()),
    }
}

impl Vaults {
    async fn password(&self, vault: &Vault, home: &str, cx: &Context<Vault>) -> Result<Password, Error> {
        let (name, wanted) = (&vault.spec.secret_name, vault.spec.secret_namespace.as_deref());
        let namespace = match wanted {
            Some(other) if other != home && self.bug != Bug::OtherNamespace => {
                return Ok(Password::Missing(format!("{other} is not the namespace of the vault")));
            }
            Some(other) => other,
            None => home,
        };
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')) {
            return Ok(Password::Missing("the name of the Secret is none".to_owned()));
        }
        let secret = if self.bug == Bug::AllNamespaces {
            let all: Api<Secret> = Api::all(cx.client());
            all.list(&ListParams::default()).await?.items.into_iter().find(|secret| secret.name_any() == *name)
        } else {
            Api::<Secret>::namespaced(cx.client(), namespace).get_opt(name).await?
        };
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        let password = data.get("password").and_then(|value| String::from_utf8(value.0.clone()).ok());
        Ok(password.map_or_else(|| Password::Missing(format!("there is no password in {name}")), Password::Found))
    }

    async fn open(&self, vault: &Vault, home: &str, password: &str, cx: &Context<Vault>) -> Result<(), Error> {
        let owner = windlass::kube::Resource::controller_owner_ref(vault, &()).expect("an object of the API has a uid");
        let mut metadata = ObjectMeta { owner_references: Some(vec![owner]), ..named(vault.name_any()) };
        if self.bug == Bug::SecretInObject {
            let encoded: String = password.bytes().map(|byte| format!("{byte:02x}")).collect();
            metadata.annotations = Some([("gallery/opened-with".to_owned(), encoded)].into());
        }
        if self.bug == Bug::SecretInLog {
            tracing::debug!(password, "Opening");
        }
        if self.bug == Bug::ClusterWide {
            let roles: Api<ClusterRole> = Api::all(cx.client());
            let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": [],
                              "metadata": {"name": vault.name_any()}});
            roles.patch(&vault.name_any(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(role)).await?;
        }
        let opened = map(metadata, [("secret".to_owned(), vault.spec.secret_name.clone())]);
        let mut opened = serde_json::to_value(opened).map_err(Error::failed)?;
        (opened["apiVersion"], opened["kind"]) = ("v1".into(), "ConfigMap".into());
        let maps: Api<ConfigMap> = Api::namespaced(cx.client(), home);
        let applied = maps.patch(&vault.name_any(), &PatchParams::apply(MANAGER).force(), &Patch::Apply(opened)).await;
        match applied {
            Err(error) if self.bug == Bug::SecretInError => {
                Err(Error::failed(format!("cannot open with {password}: {error}")))
            }
            applied => Ok(applied.map(drop)?),
        }
    }
}
