//! The operator at work on a cluster, with its own rights and Pods that only pretend to run.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Debug;

use futures::TryStreamExt;
use memcached_operator::{Memcached, MemcachedSpec, app};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::k8s_openapi::api::core::v1::Event as CoreEvent;
use windlass::kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use windlass::kube::runtime::wait::await_condition;
use windlass::kube::runtime::{WatchStreamExt, watcher};
use windlass::kube::{Api, Client, Resource};
use windlass::prelude::*;
use windlass::rbac::{Comparison, Part, Recording, Right};
use windlass::runtime::tap::Tap;
use windlass::runtime::{Clock, Manager, ManagerConfig, Namespaces, RunError};
use windlass::serde_json::{Value, json};
use windlass::{ManifestOptions, Program};
use windlass_testkit::{PATIENCE, Profile, TestCluster};

struct Fixture {
    cluster: TestCluster,
    client: Client,
    tap: Tap,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl Fixture {
    async fn start() -> Self {
        let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
        let client = cluster.client();
        let app = app();
        cluster.define(app.crds()).await;
        // The operator has the rights of its service account, and no others: one that it lacks fails the test.
        let options = ManifestOptions::of(&app);
        cluster.namespace(&options.namespace).await;
        cluster.apply(app.roles(&options)).await;
        let own_client = cluster.client_of_account(&options.namespace, app.name());
        let mut manager = Manager::new(own_client, ManagerConfig::new(app.name()));
        app.install(&mut manager, Namespaces::all());
        let (tap, stop) = (manager.tap().clone(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        Self { cluster, client, tap, stop, running }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, name: &str, size: u32) {
        let memcached = Memcached::new(name, MemcachedSpec { size, image: None, arguments: Vec::new() });
        self.api().create(&PostParams::default(), &memcached).await.unwrap();
    }

    async fn settled(&self, name: &str, size: usize) -> Memcached {
        until(&self.api::<Memcached>(), |memcached| {
            let status = memcached.status.as_ref();
            let nodes = status.map_or(0, |status| status.nodes.len());
            let observed = status.and_then(|status| status.observed_generation) == memcached.metadata.generation;
            let is_ready = is_true(memcached, "/status/conditions", "Ready");
            // That it is healthy is noticed a moment after it is ready, when the Deployment says so, too.
            let trial = status.and_then(|status| status.upgrade.as_ref()?.in_progress.as_ref());
            let is_healthy = trial.is_none_or(|trial| trial.healthy_since.is_some());
            memcached.name_any() == name && observed && is_ready && is_healthy && nodes == size
        })
        .await
    }

    async fn event(&self, reason: &str, words: &str) {
        until(&self.api::<CoreEvent>(), |event| {
            let message = event.message.as_deref().unwrap_or_default();
            event.involved_object.kind.as_deref() == Some("Memcached")
                && event.reason.as_deref() == Some(reason)
                && message.contains(words)
        })
        .await;
    }

    async fn patch<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + for<'de> Deserialize<'de>,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    async fn gone<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = windlass::k8s_openapi::NamespaceResourceScope>
            + Clone
            + Debug
            + for<'de> Deserialize<'de>
            + Send
            + 'static,
    {
        let is_gone = await_condition(self.api::<K>(), name, |object: Option<&K>| object.is_none());
        tokio::time::timeout(PATIENCE, is_gone).await.unwrap().unwrap();
    }

    /// Ends everything; what the operator did must have been allowed.
    async fn end(self) -> Recording {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        self.cluster.stop().await;
        let recording = Recording::of(&app(), self.tap.rights());
        assert_eq!(recording.rights.refused(), [] as [&Right; 0], "the operator's own role is not enough");
        recording.save().unwrap();
        recording
    }
}

/// Waits until an object of `api` is as `wanted`, and returns it.
async fn until<K>(api: &Api<K>, wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + Serialize + for<'de> Deserialize<'de> + Send + 'static,
    K::DynamicType: Default,
{
    let mut last = None;
    let found = async {
        let mut objects = std::pin::pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
        while let Some(object) = objects.try_next().await.unwrap() {
            if wanted(&object) {
                return object;
            }
            last = Some(object);
        }
        unreachable!("a watch does not end")
    };
    match tokio::time::timeout(PATIENCE, found).await {
        Ok(object) => object,
        Err(_) => panic!("not within {PATIENCE:?}; the last that was seen is {}", windlass::serde_json::json!(last)),
    }
}

fn is_true<K: Serialize>(object: &K, conditions: &str, type_: &str) -> bool {
    let object = windlass::serde_json::to_value(object).unwrap();
    let conditions = object.pointer(conditions).and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_made_scaled_healed_and_removed() {
    let fixture = Fixture::start().await;
    fixture.create("cache", 2).await;
    let memcached = fixture.settled("cache", 2).await;
    assert_eq!(memcached.status.unwrap().selector, "app.kubernetes.io/instance=cache,app.kubernetes.io/name=memcached");

    fixture.patch::<Memcached>("cache", json!({"spec": {"size": 3}})).await;
    fixture.settled("cache", 3).await;

    let edited: Deployment = fixture.patch("cache", json!({"spec": {"replicas": 5}})).await;
    let is_healed = |deployment: &Deployment| {
        let spec = deployment.spec.as_ref().unwrap();
        spec.replicas == Some(3) && deployment.metadata.generation > edited.metadata.generation
    };
    until(&fixture.api(), is_healed).await;
    fixture.event("DriftCorrected", "spec.replicas from 5 to 3").await;
    // Events are sent in their order: what was asked for is not among them.
    let told = fixture.api::<CoreEvent>().list(&Default::default()).await.unwrap().items;
    let is_ours = |event: &&CoreEvent| event.involved_object.kind.as_deref() == Some("Memcached");
    let reasons: Vec<_> = told.iter().filter(is_ours).filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, ["DriftCorrected"]);
    fixture.settled("cache", 3).await;

    let old = fixture.api::<Deployment>().get("cache").await.unwrap();
    fixture.api::<Deployment>().delete("cache", &DeleteParams::background()).await.unwrap();
    until(&fixture.api::<Deployment>(), |deployment| deployment.metadata.uid != old.metadata.uid).await;
    fixture.event("Recreated", "Deployment cache was gone").await;
    fixture.settled("cache", 3).await;

    let pods: Vec<_> = fixture.api::<Pod>().list(&Default::default()).await.unwrap().items;
    assert!(pods.len() >= 3, "those of the old Deployment may still be on their way out");
    fixture.api::<Memcached>().delete("cache", &DeleteParams::background()).await.unwrap();
    fixture.gone::<Deployment>("cache").await;
    fixture.gone::<Service>("cache").await;
    for pod in pods {
        fixture.gone::<Pod>(&pod.name_any()).await;
    }
    the_role_is_enough_and_not_more_than_needed(fixture.end().await);
}

/// What a whole life takes is what is declared, but for what is argued here.
fn the_role_is_enough_and_not_more_than_needed(life: Recording) {
    let comparison = Comparison::of(&app(), &[life]);
    comparison.assert_enough();
    // Nobody else leads in this process, and no webhooks are served: the tests of the program have those.
    comparison.of_part(Part::Work).assert_used_but(&[
        // Lists and watches are how the runtime reads; whoever may do that sees as much as by a get.
        "get memcacheds.cache.example.com",
        "get deployments.apps",
        "get services",
        "get replicasets.apps",
        "get pods",
        "get controllerrevisions.apps",
        // Clusters with OwnerReferencesPermissionEnforcement ask for it; the embedded one does not.
        "update memcacheds.cache.example.com/finalizers",
        // Both children are always wanted; the next release may want one no longer, and has to remove it.
        "delete deployments.apps",
        "delete services",
        // A revision goes when another one is known to be good, which takes a minute: `upgrades.rs` has that.
        "delete controllerrevisions.apps",
        // Only an event that repeats is counted.
        "patch events",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_when_nothing_is_to_be_done() {
    let fixture = Fixture::start().await;
    fixture.create("cache", 1).await;
    fixture.settled("cache", 1).await;
    let settled_at = Clock::system().now();

    // A change that is nothing to the operator: the marker is reconciled after it, so it was looked at.
    fixture.patch::<Memcached>("cache", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    fixture.create("marker", 1).await;
    fixture.settled("marker", 1).await;

    let to_cache: Vec<_> = (fixture.tap.journal().writes().iter())
        .filter(|entry| entry.at > settled_at && entry.call.name.as_deref() == Some("cache"))
        .map(|entry| (entry.call.verb, entry.call.resource.clone()))
        .collect();
    assert_eq!(to_cache, []);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_resource_is_left_alone_until_it_goes_on() {
    let fixture = Fixture::start().await;
    fixture.create("cache", 1).await;
    fixture.settled("cache", 1).await;
    fixture.patch::<Memcached>("cache", json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}})).await;
    until(&fixture.api::<Memcached>(), |memcached| is_true(memcached, "/status/conditions", "Paused")).await;

    fixture.patch::<Deployment>("cache", json!({"spec": {"replicas": 2}})).await;
    fixture.create("marker", 1).await;
    fixture.settled("marker", 1).await;
    let deployment = fixture.api::<Deployment>().get("cache").await.unwrap();
    assert_eq!(deployment.spec.unwrap().replicas, Some(2));

    fixture.patch::<Memcached>("cache", json!({"metadata": {"annotations": {"windlass.dev/paused": null}}})).await;
    fixture.event("DriftCorrected", "spec.replicas from 2 to 1").await;
    fixture.settled("cache", 1).await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_somebody_else_is_not_taken_over() {
    let fixture = Fixture::start().await;
    let service = json!({"metadata": {"name": "cache"}, "spec": {"ports": [{"port": 80}]}});
    let service: Service = windlass::serde_json::from_value(service).unwrap();
    fixture.api().create(&PostParams::default(), &service).await.unwrap();
    fixture.create("cache", 1).await;
    let stalled =
        until(&fixture.api::<Memcached>(), |memcached| is_true(memcached, "/status/conditions", "Stalled")).await;
    let conditions = stalled.status.unwrap().conditions;
    let ready = windlass::condition::find(&conditions, "Ready").unwrap();
    assert!(ready.message.contains("Service cache exists and was not made by memcached-operator"), "{}", ready.message);
    let service = fixture.api::<Service>().get("cache").await.unwrap();
    assert_eq!(service.metadata.owner_references, None);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_out_of_range_is_refused_by_the_definition() {
    let fixture = Fixture::start().await;
    let memcached = Memcached::new("cache", MemcachedSpec { size: 17, image: None, arguments: Vec::new() });
    let refusal = fixture.api().create(&PostParams::default(), &memcached).await.unwrap_err();
    assert!(refusal.to_string().contains("spec.size"), "{refusal}");
    fixture.end().await;
}
