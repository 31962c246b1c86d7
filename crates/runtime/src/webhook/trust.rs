//! What callers trust: the authorities, put where the API server looks for them.

use k8s_openapi::ByteString;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde::Serialize;
use serde_json::{Value, json};

use super::registration::{Reach, Registration};

/// Why the API server does not know whom to trust.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    #[error("{kind} {name} is missing: apply what the command `manifests` prints")]
    Missing { kind: String, name: String },
    #[error("cannot change {kind} {name}: {source}")]
    Write {
        kind: String,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("{kind} {name} is kept by somebody else, such as the operator inside of the cluster ({why})")]
    Taken { kind: String, name: String, why: String },
}

/// Writes the authorities into the objects that point to webhooks.
pub(super) struct Trust {
    pub(super) client: Client,
    pub(super) registration: Registration,
    pub(super) reach: Reach,
}

impl Trust {
    /// Makes the API server trust `bundle`, wherever it does not yet. At the `first` time an operator outside of the
    /// cluster puts everything there anew, since its functions and kinds may have changed.
    pub(super) async fn establish(&self, bundle: &str, first: bool) -> Result<(), TrustError> {
        let is_local = matches!(self.reach, Reach::Url(_));
        for object in self.objects(bundle) {
            let (api, kind, name) = self.api(&object);
            let failed = |source| TrustError::Write { kind: kind.clone(), name: name.clone(), source };
            let present = api.get_opt(&name).await.map_err(failed)?;
            let is_fresh = !(first && is_local);
            if is_fresh && present.as_ref().is_some_and(|present| trusts(&present.data, &object)) {
                continue;
            }
            if present.is_none() && !is_local {
                return Err(TrustError::Missing { kind, name });
            }
            self.apply(&api, &object).await.map_err(|error| match error {
                kube::Error::Api(status) if status.code == 409 => {
                    TrustError::Taken { kind: kind.clone(), name: name.clone(), why: status.message.clone() }
                }
                source => failed(source),
            })?;
            tracing::info!(%kind, %name, "The API server was told whom to trust");
        }
        Ok(())
    }

    /// Removes the configurations of admission that were installed from outside of the cluster: nobody answers any more.
    pub(super) async fn withdraw(&self) {
        if matches!(self.reach, Reach::Service { .. }) {
            return;
        }
        for object in self.objects("").into_iter().filter(|object| object["kind"] != "CustomResourceDefinition") {
            let (api, kind, name) = self.api(&object);
            match api.delete(&name, &kube::api::DeleteParams::default()).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(error) => tracing::warn!(%error, %kind, %name, "Cannot remove; requests fail until it is deleted"),
            }
        }
    }

    async fn apply(&self, api: &Api<DynamicObject>, object: &Value) -> kube::Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let manager = format!("{}-webhooks", self.registration.name);
        let params = match self.reach {
            Reach::Service { .. } => PatchParams::apply(&manager).force(),
            Reach::Url(_) => PatchParams::apply(&manager),
        };
        api.patch(name, &params, &Patch::Apply(object)).await.map(drop)
    }

    /// What must be in the API: all of it for an operator outside of the cluster, the authorities alone inside, where
    /// the rest came with the manifests.
    fn objects(&self, bundle: &str) -> Vec<Value> {
        let (of, reach, bundle) = (&self.registration, &self.reach, Some(bundle));
        let mut all: Vec<Value> = Vec::new();
        let definitions = of.definitions(reach, bundle);
        let is_local = matches!(reach, Reach::Url(_));
        all.extend(definitions.iter().filter(|it| is_local || it.spec.conversion.is_some()).map(value));
        all.extend(of.mutating(reach, bundle).iter().map(value));
        all.extend(of.validating(reach, bundle).iter().map(value));
        if is_local { all } else { all.iter().map(authorities_alone).collect() }
    }

    fn api(&self, object: &Value) -> (Api<DynamicObject>, String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let (group, version) = api_version.split_once('/').unwrap_or_default();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        (Api::all_with(self.client.clone(), &resource), kind, text(&object["metadata"]["name"]))
    }
}

fn value<T: Serialize>(object: &T) -> Value {
    serde_json::to_value(object).expect("objects of the API can be written as JSON")
}

/// The part of an object that says whom to trust, with what identifies it.
fn authorities_alone(object: &Value) -> Value {
    let mut part = json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": object["metadata"]["name"]},
    });
    if let Some(hooks) = object["webhooks"].as_array() {
        let alone = |hook: &Value| json!({"name": hook["name"], "clientConfig": {"caBundle": hook["clientConfig"]["caBundle"]}});
        part["webhooks"] = hooks.iter().map(alone).collect();
    } else {
        let bundle = &object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"];
        part["spec"] = json!({"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}});
    }
    part
}

/// Whether all that `wanted` says of clients, the authorities included, is in the present object.
fn trusts(present: &Value, wanted: &Value) -> bool {
    let is_in = |wanted: &Value, present: &Value| {
        let fields = wanted["clientConfig"].as_object();
        fields.into_iter().flatten().all(|(name, value)| same(&present["clientConfig"][name], value))
    };
    if let Some(hooks) = wanted["webhooks"].as_array() {
        let present = present["webhooks"].as_array();
        return hooks.iter().all(|hook| {
            present.into_iter().flatten().any(|present| present["name"] == hook["name"] && is_in(hook, present))
        });
    }
    is_in(&wanted["spec"]["conversion"]["webhook"], &present["spec"]["conversion"]["webhook"])
}

/// Equal, or the same bytes written differently.
fn same(one: &Value, other: &Value) -> bool {
    let bytes = |value: &Value| serde_json::from_value::<ByteString>(value.clone()).ok();
    one == other || (bytes(one).is_some() && bytes(one) == bytes(other))
}
