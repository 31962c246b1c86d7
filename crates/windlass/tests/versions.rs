//! Several versions of a kind: conversions checked both ways, served to a cluster in this process, and moved in storage.

#![expect(missing_docs, reason = "the kinds are those of a test")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod served;

use served::Served;
use tokio_util::sync::CancellationToken;
use windlass::Program;
use windlass::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass::kube::Api;
use windlass::kube::api::{ListParams, Patch, PatchParams, PostParams};
use windlass::prelude::*;
use windlass::runtime::webhook::{Migrated, Way, Webhooks, migrate};
use windlass::runtime::{Health, Manager, ManagerConfig};
use windlass::serde_json::json;

pub mod v1alpha1 {
    use super::*;

    /// A cache, in its first form.
    #[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
    #[resource(group = "cache.example.com", version = "v1alpha1", kind = "Cache", deprecated = "use v1")]
    #[serde(rename_all = "camelCase")]
    pub struct CacheSpec {
        pub size: u32,
        #[schema(max = 1000)]
        pub timeout_minutes: u32,
    }
}

pub mod v1beta1 {
    use super::*;

    /// A cache, with a finer timeout.
    #[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
    #[resource(group = "cache.example.com", version = "v1beta1", kind = "Cache")]
    #[serde(rename_all = "camelCase")]
    pub struct CacheSpec {
        pub replicas: u32,
        #[schema(max = 60000)]
        pub timeout_seconds: u32,
        #[serde(default)]
        #[schema(keys("name"))]
        pub hosts: Vec<Host>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub struct Host {
        pub name: String,
    }
}

pub mod v1 {
    use super::*;

    /// A cache.
    #[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
    #[resource(group = "cache.example.com", version = "v1", kind = "Cache", status = CacheStatus)]
    #[serde(rename_all = "camelCase")]
    pub struct CacheSpec {
        pub replicas: u32,
        #[schema(max = 60000)]
        pub timeout_seconds: u32,
        #[serde(default)]
        #[schema(keys("name"))]
        pub hosts: Vec<Host>,
        pub zone: Option<String>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub struct Host {
        pub name: String,
        pub weight: Option<u32>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
    #[serde(default)]
    pub struct CacheStatus {
        pub hits: u32,
    }
}

fn beta_of_alpha(old: v1alpha1::Cache) -> v1beta1::Cache {
    let v1alpha1::CacheSpec { size, timeout_minutes } = old.spec;
    let spec = v1beta1::CacheSpec { replicas: size, timeout_seconds: timeout_minutes * 60, hosts: Vec::new() };
    v1beta1::Cache { metadata: old.metadata, spec, status: old.status }
}

fn alpha_of_beta(new: v1beta1::Cache) -> v1alpha1::Cache {
    let spec = v1alpha1::CacheSpec { size: new.spec.replicas, timeout_minutes: new.spec.timeout_seconds / 60 };
    v1alpha1::Cache { metadata: new.metadata, spec, status: new.status }
}

fn stable_of_beta(old: v1beta1::Cache) -> v1::Cache {
    let v1beta1::CacheSpec { replicas, timeout_seconds, hosts } = old.spec;
    let hosts = hosts.into_iter().map(|host| v1::Host { name: host.name, weight: None }).collect();
    let spec = v1::CacheSpec { replicas, timeout_seconds, hosts, zone: None };
    v1::Cache {
        metadata: old.metadata,
        spec,
        status: old.status.map(|status| status.map(|_| v1::CacheStatus::default())),
    }
}

fn beta_of_stable(new: v1::Cache) -> v1beta1::Cache {
    let v1::CacheSpec { replicas, timeout_seconds, hosts, .. } = new.spec;
    let hosts = hosts.into_iter().map(|host| v1beta1::Host { name: host.name }).collect();
    let spec = v1beta1::CacheSpec { replicas, timeout_seconds, hosts };
    v1beta1::Cache { metadata: new.metadata, spec, status: new.status.map(|status| status.map(|_| NoStatus {})) }
}

fn versions() -> Versions<v1::Cache> {
    Versions::of::<v1alpha1::Cache>().then(beta_of_alpha, alpha_of_beta).then(stable_of_beta, beta_of_stable)
}

struct Caches;

impl Operator for Caches {
    type Resource = v1::Cache;

    fn desired(&self, _: &v1::Cache, _: &World) -> Outcome<v1::CacheStatus> {
        Desired::new().settled()
    }
}

#[test]
fn what_conversions_lose_is_known_by_name() {
    versions().losses().assert_only(&[
        "v1 -> v1beta1: spec.hosts[].weight",
        "v1 -> v1beta1: spec.zone",
        "v1 -> v1beta1: status.hits",
        "v1beta1 -> v1alpha1: spec.hosts",
        "v1beta1 -> v1alpha1: spec.timeoutSeconds",
    ]);
}

#[test]
#[should_panic(expected = "v1alpha1 -> v1beta1: spec.size is lost")]
fn a_mistake_in_a_conversion_is_named() {
    let forgetful = |old: v1alpha1::Cache| {
        let mut new = beta_of_alpha(old);
        new.spec.replicas = 1;
        new
    };
    Versions::of::<v1alpha1::Cache>()
        .then(forgetful, alpha_of_beta)
        .losses()
        .assert_only(&["v1beta1 -> v1alpha1: spec.hosts", "v1beta1 -> v1alpha1: spec.timeoutSeconds"]);
}

#[test]
#[should_panic(expected = "v1alpha1 -> v1beta1: spec.timeoutSeconds is refused: it is ")]
fn a_value_that_the_other_version_refuses_is_named() {
    let generous = |old: v1alpha1::Cache| {
        let mut new = beta_of_alpha(old);
        new.spec.timeout_seconds *= 10;
        new
    };
    Versions::of::<v1alpha1::Cache>()
        .then(generous, alpha_of_beta)
        .losses()
        .assert_only(&["v1beta1 -> v1alpha1: spec.hosts", "v1beta1 -> v1alpha1: spec.timeoutSeconds"]);
}

fn cache(name: &str) -> v1::Cache {
    let host = |name: &str, weight| v1::Host { name: name.into(), weight };
    let hosts = vec![host("a", Some(1)), host("b", Some(2))];
    v1::Cache::new(name, v1::CacheSpec { replicas: 3, timeout_seconds: 90, hosts, zone: Some("north".into()) })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_serves_every_object_and_nothing_is_lost_on_the_way() {
    let served = Served::start(&windlass::operator(Caches).versions(&versions())).await;
    let newest: Api<v1::Cache> = served.cluster.api();
    let oldest: Api<v1alpha1::Cache> = served.cluster.api();
    newest.create(&PostParams::default(), &cache("c")).await.unwrap();

    let mut old = oldest.get("c").await.unwrap();
    assert_eq!((old.spec.size, old.spec.timeout_minutes), (3, 1));
    assert_eq!(oldest.list(&ListParams::default()).await.unwrap().items.len(), 1);
    old.spec.size = 5;
    oldest.replace("c", &PostParams::default(), &old).await.unwrap();

    let new = newest.get("c").await.unwrap();
    let weights: Vec<_> = new.spec.hosts.iter().map(|host| host.weight).collect();
    assert_eq!((new.spec.replicas, new.spec.timeout_seconds, weights), (5, 90, vec![Some(1), Some(2)]));
    assert_eq!((new.spec.zone.as_deref(), new.annotations().len()), (Some("north"), 0));

    let patch = Patch::Merge(json!({"spec": {"timeoutMinutes": 4}}));
    oldest.patch("c", &PatchParams::default(), &patch).await.unwrap();
    let new = newest.get("c").await.unwrap();
    assert_eq!(
        (new.spec.timeout_seconds, new.spec.zone.as_deref()),
        (240, Some("north")),
        "what was changed stays changed"
    );

    let apply = json!({
        "apiVersion": "cache.example.com/v1beta1", "kind": "Cache", "metadata": {"name": "c"},
        "spec": {"replicas": 7, "hosts": [{"name": "b"}]},
    });
    let middle: Api<v1beta1::Cache> = served.cluster.api();
    middle.patch("c", &PatchParams::apply("test").force(), &Patch::Apply(&apply)).await.unwrap();
    let new = newest.get("c").await.unwrap();
    let weight = new.spec.hosts.iter().find(|host| host.name == "b").unwrap().weight;
    assert_eq!((new.spec.replicas, weight), (7, Some(2)), "server-side apply in another version");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_move_to_a_new_storage_version() {
    let before = versions().stored_as::<v1beta1::Cache>();
    let served = Served::start(&windlass::operator(Caches).versions(&before)).await;
    let newest: Api<v1::Cache> = served.cluster.api();
    // More than are listed at once.
    for index in 0..120 {
        newest.create(&PostParams::default(), &cache(&format!("c-{index}"))).await.unwrap();
    }
    let stored = async |served: &Served| {
        let definitions: Api<CustomResourceDefinition> = Api::all(served.cluster.client());
        definitions.get("caches.cache.example.com").await.unwrap().status.unwrap().stored_versions.unwrap()
    };
    assert_eq!(stored(&served).await, ["v1beta1"]);
    let revisions = async || {
        let all = newest.list(&ListParams::default()).await.unwrap();
        all.items.into_iter().map(|cache| cache.resource_version().unwrap()).collect::<Vec<_>>()
    };
    let old_revisions = revisions().await;

    let served = served.restart(&windlass::operator(Caches).versions(&versions())).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(served.cluster.client());
    let is_moved = |all: &[CustomResourceDefinition]| {
        all.iter().any(|it| it.status.as_ref().unwrap().stored_versions.as_deref() == Some(&["v1".to_owned()]))
    };
    windlass_testkit::until(definitions, is_moved).await;
    let new_revisions = revisions().await;
    assert!(old_revisions.iter().all(|old| !new_revisions.contains(old)), "each was written");
    assert_eq!(newest.get("c-7").await.unwrap().spec.zone.as_deref(), Some("north"));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_some_namespaces_leaves_the_move_to_somebody_with_a_right_to_all() {
    let before = versions().stored_as::<v1beta1::Cache>();
    let served = Served::start(&windlass::operator(Caches).versions(&before)).await;
    served.cluster.api().create(&PostParams::default(), &cache("c")).await.unwrap();
    let cluster = served.end_webhooks().await;
    let app = windlass::operator(Caches).versions(&versions());
    let webhooks = Webhooks {
        registration: app.registration(vec!["elsewhere".into()]),
        address: "127.0.0.1:0".parse().unwrap(),
        way: Way::Address { namespace: "default".into() },
    };
    let (health, stop) = (Health::default(), CancellationToken::new());
    let check = health.check("webhooks", "are not served yet");
    let manager = Manager::new(cluster.client(), ManagerConfig::new("caches"));
    let mut serving = webhooks.start(&manager.handle(), check, stop.clone()).await.unwrap();
    serving.ready().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let is_stored_as = |wanted: &'static [&'static str]| {
        move |all: &[CustomResourceDefinition]| {
            let stored = all.iter().find_map(|it| it.status.as_ref()?.stored_versions.clone());
            stored.is_some_and(|stored| stored == wanted)
        }
    };
    windlass_testkit::until(definitions.clone(), is_stored_as(&["v1beta1", "v1"])).await;
    let moved = migrate(&cluster.client(), versions().chain()).await.unwrap();
    assert_eq!(moved, Migrated::Done(1));
    windlass_testkit::until(definitions, is_stored_as(&["v1"])).await;
    stop.cancel();
    serving.ended().await;
    cluster.stop().await;
}
