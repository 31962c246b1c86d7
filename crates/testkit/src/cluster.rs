//! A cluster inside a test.

use std::fmt::Debug;
use std::sync::OnceLock;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_apiserver::auth::User;
use windlass_cluster::{Cluster, Kubeconfig};

use crate::kubernetes::{KUBERNETES, Kubernetes};
use crate::{Builder, TestClock, wait};

/// Where objects go that name no namespace.
const NAMESPACE: &str = "default";

/// A kind whose objects live in namespaces, as `k8s-openapi` and `kube::CustomResource` make them.
pub trait Kind:
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

/// The state of a test cluster at one moment; taking and keeping one costs next to nothing.
#[derive(Clone, Debug)]
pub struct Snapshot(windlass_store::Snapshot);

/// A cluster inside a test: an API server and controllers in this process, without TCP and without a disk. If
/// [`crate::KUBERNETES`] is set in the environment, it is a control plane of the real Kubernetes instead, whose nodes
/// only seem to run Pods; its time is that of the machine, and it cannot be reset.
///
/// It ends when it is dropped; [`TestCluster::stop`] waits for that.
#[derive(Debug)]
pub struct TestCluster {
    ground: Ground,
    clock: TestClock,
    listening: OnceLock<Kubeconfig>,
}

/// What a test cluster is made of.
#[derive(Debug)]
pub(crate) enum Ground {
    Embedded(Box<Cluster>),
    Kubernetes(Box<Kubernetes>),
}

impl TestCluster {
    /// A cluster with garbage collection, namespaces and service accounts.
    ///
    /// # Panics
    /// If it cannot start.
    pub async fn start() -> Self {
        Builder::default().start().await
    }

    /// A cluster with other controllers or another clock.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(ground: Ground, clock: TestClock) -> Self {
        Self { ground, clock, listening: OnceLock::new() }
    }

    /// A client with every right.
    pub fn client(&self) -> Client {
        match &self.ground {
            Ground::Embedded(cluster) => cluster.client(),
            Ground::Kubernetes(kubernetes) => kubernetes.client(),
        }
    }

    /// A client of the user `name`, a member of `groups`, with the rights that RBAC gives.
    pub fn client_as(&self, name: &str, groups: &[&str]) -> Client {
        match &self.ground {
            Ground::Embedded(cluster) => cluster.client_of(User::new(name, groups.iter().copied())),
            Ground::Kubernetes(kubernetes) => kubernetes.client_as(name, groups),
        }
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> &TestClock {
        &self.clock
    }

    /// The parts of the cluster, for what is not here.
    ///
    /// # Panics
    /// On a real Kubernetes: only the embedded cluster has these parts.
    pub fn cluster(&self) -> &Cluster {
        match &self.ground {
            Ground::Embedded(cluster) => cluster,
            Ground::Kubernetes(_) => panic!("this test needs the embedded cluster: run it without {KUBERNETES}"),
        }
    }

    /// The present state.
    ///
    /// # Panics
    /// On a real Kubernetes, which has no snapshots.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.cluster().api().store().snapshot())
    }

    /// Makes all objects as they were at `snapshot`. Watchers see the changes that lead there, revisions go on, and the
    /// clock stays. Controllers see it as they see any change: stop those that should not act on it first.
    ///
    /// # Panics
    /// If others write without a pause, and on a real Kubernetes.
    pub async fn reset(&self, snapshot: &Snapshot) {
        if let Err(error) = self.cluster().api().restore(&snapshot.0).await {
            panic!("the cluster does not go back: {error}");
        }
    }

    /// The URL of the API server; from the first call on it listens on the loopback address.
    ///
    /// # Panics
    /// As [`TestCluster::kubeconfig`].
    pub fn url(&self) -> &str {
        &self.kubeconfig().server
    }

    /// What `kubectl --kubeconfig` needs to look into the test; from the first call on the API server listens on the
    /// loopback address. Its text is the file.
    ///
    /// # Panics
    /// If no port can be had, or outside of the tokio runtime.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        self.listening.get_or_init(|| match &self.ground {
            Ground::Kubernetes(kubernetes) => kubernetes.kubeconfig.clone(),
            Ground::Embedded(cluster) => match cluster.listen() {
                Ok(kubeconfig) => kubeconfig,
                Err(error) => panic!("the test cluster does not listen: {error}"),
            },
        })
    }

    /// The API of a kind in the namespace `default`.
    pub fn api<K: Kind>(&self) -> Api<K> {
        self.api_in(NAMESPACE)
    }

    /// The API of a kind in a namespace.
    pub fn api_in<K: Kind>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client(), namespace)
    }

    /// Makes an object, in the namespace `default` if it names none.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn create<K: Kind>(&self, object: Value) -> K {
        let object: K = match serde_json::from_value(object) {
            Ok(object) => object,
            Err(error) => panic!("not a {}: {error}", K::kind(&())),
        };
        let namespace = object.namespace().unwrap_or_else(|| NAMESPACE.to_owned());
        accepted(self.api_in(&namespace).create(&PostParams::default(), &object).await)
    }

    /// Merges `patch` into an object of the namespace `default`.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        accepted(self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await)
    }

    /// Waits until the object `name` of the namespace `default` is as wanted, and returns it.
    ///
    /// # Panics
    /// If that takes longer than [`crate::PATIENCE`].
    pub async fn until<K: Kind>(&self, name: &str, wanted: impl Fn(&K) -> bool) -> K {
        let is_it = |object: &K| object.name_any() == name && wanted(object);
        let all = wait::until(self.api(), |objects: &[K]| objects.iter().any(is_it)).await;
        all.into_iter().find(is_it).expect("the wait ended because it is there")
    }

    /// Waits until the objects of the namespace `default` are as wanted, and returns them in order of their names.
    ///
    /// # Panics
    /// If that takes longer than [`crate::PATIENCE`].
    pub async fn until_all<K: Kind>(&self, wanted: impl Fn(&[K]) -> bool) -> Vec<K> {
        wait::until(self.api(), wanted).await
    }

    /// Waits until the namespace `default` has no object called `name`.
    ///
    /// # Panics
    /// If that takes longer than [`crate::PATIENCE`].
    pub async fn until_gone<K: Kind>(&self, name: &str) {
        wait::until_gone(self.api::<K>(), name).await;
    }

    /// The objects of the namespace `default`.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub async fn list<K: Kind>(&self) -> Vec<K> {
        accepted(self.api().list(&ListParams::default()).await).items
    }

    /// Waits for an event with `reason` about the object `name` of the namespace `default`.
    ///
    /// # Panics
    /// If that takes longer than [`crate::PATIENCE`].
    pub async fn until_event(&self, name: &str, reason: &str) -> Event {
        let is_it = |event: &Event| {
            event.involved_object.name.as_deref() == Some(name) && event.reason.as_deref() == Some(reason)
        };
        let events = self.until_all(|events: &[Event]| events.iter().any(is_it)).await;
        events.into_iter().find(is_it).expect("the wait ended because it is there")
    }

    /// Ends the cluster and waits for that.
    pub async fn stop(self) {
        match self.ground {
            Ground::Embedded(cluster) => cluster.shutdown().await,
            Ground::Kubernetes(kubernetes) => kubernetes.stop().await,
        }
    }
}

fn accepted<K>(outcome: kube::Result<K>) -> K {
    match outcome {
        Ok(object) => object,
        Err(error) => panic!("the API server refused it: {error}"),
    }
}
