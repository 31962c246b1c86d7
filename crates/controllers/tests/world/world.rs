//! A cluster in memory, objects from JSON, and waits for what should become true.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_cluster::{Cluster, ClusterConfig, Profile};

/// Long enough for a busy machine; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What tests know of a kind.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A cluster with all controllers and a fake node.
pub(crate) struct World {
    cluster: Cluster,
}

impl World {
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::start(ClusterConfig::in_memory(Profile::Workloads)).await.unwrap();
        Self { cluster }
    }

    pub(crate) fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The API of a kind in the namespace `default`.
    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client(), "default")
    }

    pub(crate) async fn create<K: Kind>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
        Api::namespaced(self.client(), &namespace).create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Waits until the object called `name` is as wanted, and returns it.
    pub(crate) async fn until<K: Kind>(&self, name: &str, wanted: impl Fn(&K) -> bool) -> K {
        let all =
            self.until_all(|objects: &[K]| objects.iter().any(|object| object.name_any() == name && wanted(object)));
        all.await.into_iter().find(|object| object.name_any() == name).unwrap()
    }

    /// Waits until there is no object called `name`.
    pub(crate) async fn until_gone<K: Kind>(&self, name: &str) {
        self.until_all(|objects: &[K]| objects.iter().all(|object| object.name_any() != name)).await;
    }

    /// Waits until the objects of the namespace `default` are as wanted, and returns them in order of their names.
    pub(crate) async fn until_all<K: Kind>(&self, wanted: impl Fn(&[K]) -> bool) -> Vec<K> {
        until(self.api(), wanted).await
    }

    /// Waits for an event on the object called `name`.
    pub(crate) async fn until_event(&self, name: &str, reason: &str) -> Event {
        let is_it = |event: &Event| {
            event.involved_object.name.as_deref() == Some(name) && event.reason.as_deref() == Some(reason)
        };
        self.until_all(|events: &[Event]| events.iter().any(is_it)).await.into_iter().find(is_it).unwrap()
    }

    pub(crate) async fn list<K: Kind>(&self) -> Vec<K> {
        self.api().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn stop(self) {
        self.cluster.shutdown().await;
    }
}

/// Waits until the objects of `api` are as wanted, and returns them in order of their names.
pub(crate) async fn until<K>(api: Api<K>, wanted: impl Fn(&[K]) -> bool) -> Vec<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut objects: std::collections::BTreeMap<String, K> = Default::default();
    let seen = std::sync::Mutex::new(vec![]);
    let wait = async {
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
        let mut listing = false;
        while let Some(event) = events.next().await {
            match event.unwrap() {
                watcher::Event::Init => {
                    objects.clear();
                    listing = true;
                }
                watcher::Event::InitDone => listing = false,
                watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                    objects.insert(object.name_any(), object);
                }
                watcher::Event::Delete(object) => {
                    objects.remove(&object.name_any());
                }
            }
            let now: Vec<K> = objects.values().cloned().collect();
            *seen.lock().unwrap() = now.clone();
            if !listing && wanted(&now) {
                return now;
            }
        }
        unreachable!("a watch does not end")
    };
    match tokio::time::timeout(PATIENCE, wait).await {
        Ok(objects) => objects,
        Err(_) => panic!("did not become true; the objects are {:#?}", seen.lock().unwrap()),
    }
}

/// The template of a Pod with the label `app`, running `image`.
pub(crate) fn template(app: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}]},
    })
}

/// A Deployment of that template.
pub(crate) fn deployment(name: &str, replicas: i32, image: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name, image)},
    })
}
