//! What every namespace has: the service account `default`, and the certificate authority of the cluster.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use windlass_runtime::{
    Action, Change, Context, Controller, Error, Informer, Manager, Object, ObjectKey, Reconcile, Watch,
};

use crate::actor::{Actor, exists_already, is_gone, namespace_leaves};

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const ROOT_CA_KEY: &str = "ca.crt";

/// Adds the controller of default service accounts.
pub(crate) fn add_accounts(manager: &mut Manager) {
    let accounts = manager.informers().get(Watch::<ServiceAccount>::all().fields(format!("metadata.name={ACCOUNT}")));
    let actor = Actor::new(manager, "serviceaccount-controller");
    let controller = Controller::of(manager, Accounts { actor, accounts: accounts.clone() });
    let controller = controller.named("serviceaccount").on(&accounts, namespace_of);
    manager.add(controller);
}

/// Adds the controller that publishes `pem` in every namespace.
pub(crate) fn add_root_ca(manager: &mut Manager, pem: String) {
    let maps = manager.informers().get(Watch::<ConfigMap>::all().fields(format!("metadata.name={ROOT_CA}")));
    let actor = Actor::new(manager, "root-ca-certificate-publisher");
    let controller = Controller::of(manager, RootCa { actor, maps: maps.clone(), pem });
    let controller = controller.named("root-ca").on(&maps, namespace_of);
    manager.add(controller);
}

fn namespace_of<K: Object>(change: &Change<K>) -> Option<ObjectKey> {
    change.key().namespace.map(ObjectKey::cluster)
}

fn is_leaving(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

struct Accounts {
    actor: Actor,
    accounts: Informer<ServiceAccount>,
}

impl Reconcile for Accounts {
    type Resource = Namespace;

    async fn reconcile(&self, namespace: Arc<Namespace>, _: &Context<Namespace>) -> Result<Action, Error> {
        let key = ObjectKey::namespaced(namespace.name_any(), ACCOUNT);
        if is_leaving(&namespace) || self.accounts.get(&key).is_some() {
            return Ok(Action::Await);
        }
        let account = ServiceAccount { metadata: meta(&key), ..ServiceAccount::default() };
        made(self.actor.create(&account).await)
    }
}

struct RootCa {
    actor: Actor,
    maps: Informer<ConfigMap>,
    pem: String,
}

impl Reconcile for RootCa {
    type Resource = Namespace;

    async fn reconcile(&self, namespace: Arc<Namespace>, _: &Context<Namespace>) -> Result<Action, Error> {
        if is_leaving(&namespace) {
            return Ok(Action::Await);
        }
        let key = ObjectKey::namespaced(namespace.name_any(), ROOT_CA);
        let data = Some([(ROOT_CA_KEY.to_owned(), self.pem.clone())].into());
        let Some(present) = self.maps.get(&key) else {
            let description = "The certificate authority of this cluster; it vouches for the API server inside Pods.";
            let mut map = ConfigMap { metadata: meta(&key), data, ..ConfigMap::default() };
            map.annotations_mut().insert("kubernetes.io/description".to_owned(), description.to_owned());
            return made(self.actor.create(&map).await);
        };
        if present.data == data {
            return Ok(Action::Await);
        }
        match self.actor.replace(&ConfigMap { data, ..ConfigMap::clone(&present) }).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(Action::Await),
        }
    }
}

fn meta(key: &ObjectKey) -> ObjectMeta {
    ObjectMeta { name: Some(key.name.clone()), namespace: key.namespace.clone(), ..ObjectMeta::default() }
}

/// An object that is there already, or a namespace that leaves, is as good.
fn made<K: Resource>(result: Result<K, kube::Error>) -> Result<Action, Error> {
    match result {
        Err(error) if !exists_already(&error) && !namespace_leaves(&error) && !is_gone(&error) => Err(error.into()),
        _ => Ok(Action::Await),
    }
}
