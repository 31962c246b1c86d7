//! Secrets that hold the token of a service account, for clients outside of Pods.

use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::{Api, ResourceExt};
use windlass_runtime::{Action, Change, Context, Controller, Error, Informer, Manager, ObjectKey, Reconcile, Watch};

use crate::actor::{Actor, is_conflict, is_gone};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// As long as the API allows: the token ends with its Secret.
const EXPIRATION_SECONDS: i64 = 1 << 32;

/// Adds the controller; `authority` is the certificate authority of the cluster (PEM).
pub(crate) fn add(manager: &mut Manager, authority: String) {
    let accounts = manager.informers().all::<ServiceAccount>();
    let actor = Actor::new(manager, "tokens-controller");
    let tokens = Tokens { actor, accounts: accounts.clone(), authority };
    let watch = Watch::<Secret>::all().fields(format!("type={TYPE}"));
    let controller = Controller::within(manager, watch, tokens).named("service-account-token");
    let secrets = controller.informer();
    let controller = controller.on(&accounts, move |change| of_account(change, &secrets));
    manager.add(controller);
}

/// The Secrets of an account that came or went.
fn of_account(change: &Change<ServiceAccount>, secrets: &Informer<Secret>) -> Vec<ObjectKey> {
    if change.old.is_some() && change.new.is_some() {
        return vec![];
    }
    let account = change.key();
    let namespace = account.namespace.unwrap_or_default();
    let of_it = |secret: &&Arc<Secret>| secret.annotations().get(ACCOUNT_NAME) == Some(&account.name);
    secrets.in_namespace(&namespace).iter().filter(of_it).map(|secret| ObjectKey::of(&**secret)).collect()
}

struct Tokens {
    actor: Actor,
    accounts: Informer<ServiceAccount>,
    authority: String,
}

impl Reconcile for Tokens {
    type Resource = Secret;

    async fn reconcile(&self, secret: Arc<Secret>, _: &Context<Secret>) -> Result<Action, Error> {
        let Some(name) = secret.annotations().get(ACCOUNT_NAME).filter(|name| !name.is_empty()) else {
            return Ok(Action::Await);
        };
        if secret.metadata.deletion_timestamp.is_some() || secret.type_.as_deref() != Some(TYPE) {
            return Ok(Action::Await);
        }
        let accounts: Api<ServiceAccount> = self.actor.api(secret.metadata.namespace.as_deref());
        // Asked live before a Secret is deleted: the account may just not be known yet.
        let key = ObjectKey::namespaced(secret.namespace().unwrap_or_default(), name.clone());
        let account = match self.accounts.get(&key) {
            Some(account) => Some(ServiceAccount::clone(&account)),
            None => accounts.get_opt(name).await?,
        };
        let expected = secret.annotations().get(ACCOUNT_UID);
        let same = |account: &ServiceAccount| expected.is_none() || expected == account.metadata.uid.as_ref();
        let Some(account) = account.filter(same) else {
            self.actor.delete(&*secret).await?;
            return Ok(Action::Await);
        };
        let filled = self.filled(&secret, &account, &accounts).await?;
        if filled == *secret {
            return Ok(Action::Await);
        }
        match self.actor.replace(&filled).await {
            Err(error) if !is_gone(&error) && !is_conflict(&error) => Err(error.into()),
            // Whoever was faster causes another look.
            _ => Ok(Action::Await),
        }
    }
}

impl Tokens {
    async fn filled(
        &self,
        secret: &Secret,
        account: &ServiceAccount,
        accounts: &Api<ServiceAccount>,
    ) -> Result<Secret, kube::Error> {
        let mut filled = secret.clone();
        let uid = account.metadata.uid.clone().unwrap_or_default();
        filled.annotations_mut().insert(ACCOUNT_UID.to_owned(), uid);
        let data = filled.data.get_or_insert_default();
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        data.insert("ca.crt".to_owned(), ByteString(self.authority.clone().into_bytes()));
        data.insert("namespace".to_owned(), ByteString(namespace.into_bytes()));
        if data.get("token").is_none_or(|token| token.0.is_empty()) {
            let request = request(secret);
            let answer = accounts.create_token_request(&account.name_any(), &self.actor.post(), &request).await?;
            let token = answer.status.and_then(|status| status.token).unwrap_or_default();
            data.insert("token".to_owned(), ByteString(token.into_bytes()));
        }
        Ok(filled)
    }
}

/// A token that is void once the Secret is gone.
fn request(secret: &Secret) -> TokenRequest {
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: secret.metadata.name.clone(),
        uid: secret.metadata.uid.clone(),
    };
    let spec = TokenRequestSpec {
        audiences: None,
        bound_object_ref: Some(bound),
        expiration_seconds: Some(EXPIRATION_SECONDS),
    };
    TokenRequest { spec: Some(spec), ..TokenRequest::default() }
}
