//! What the operator would do, beside what it then does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use memcached_operator::{Memcached, app};
use tokio_util::sync::CancellationToken;
use windlass::Program;
use windlass::kube::Client;
use windlass::kube::api::{Patch, PatchParams};
use windlass::plan::{Plan, PlanError, What, Wish, plan};
use windlass::runtime::{Manager, ManagerConfig, Namespaces};
use windlass::serde_json::{Value, json};
use windlass_testkit::{Profile, TestCluster};

/// Far more than anything here takes; only a failure waits for it.
const PATIENCE: Duration = Duration::from_secs(90);
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/x";
const MEMCACHEDS: &str = "apis/cache.example.com/v1alpha1/memcacheds";
const SERVICE: &str = "/api/v1/namespaces/default/services/x";

/// An API with the operator's kind and nothing else at work.
async fn cluster() -> TestCluster {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    cluster.define(app().crds()).await;
    cluster
}

fn memcached(size: u32) -> Value {
    json!({
        "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
        "metadata": {"name": "x", "namespace": "default"}, "spec": {"size": size},
    })
}

fn apply(size: u32) -> Wish {
    Wish { apply: vec![memcached(size)], field_manager: "kubectl".into(), ..Wish::default() }
}

/// Makes a plan, and sees that every object is as it was to the last revision.
async fn foresee(cluster: &TestCluster, wish: &Wish) -> Result<Plan, PlanError> {
    let before = revisions(&cluster.client()).await;
    let plan = plan(&app(), cluster.client(), Namespaces::all(), wish).await;
    assert_eq!(revisions(&cluster.client()).await, before, "nothing is written");
    plan
}

/// The objects of the namespace with their revisions. That of the whole store will not do: a real API server writes there
/// by itself.
async fn revisions(client: &Client) -> Vec<(String, Value)> {
    let kinds = ["api/v1/configmaps", "api/v1/events", "api/v1/services", "apis/apps/v1/deployments", MEMCACHEDS];
    let mut all = Vec::new();
    for kind in kinds {
        let (api, resource) = kind.rsplit_once('/').unwrap();
        let list = get(client, &format!("/{api}/namespaces/default/{resource}")).await.unwrap();
        let objects = list["items"].as_array().unwrap().iter().map(|object| &object["metadata"]);
        // The API server makes this one when it finds the time.
        let objects = objects.filter(|metadata| metadata["name"] != "kubernetes");
        all.extend(
            objects.map(|metadata| (format!("{kind} {}", metadata["name"]), metadata["resourceVersion"].clone())),
        );
    }
    all
}

async fn get(client: &Client, path: &str) -> Option<Value> {
    client.request(windlass::runtime::http::Request::get(path).body(Vec::new()).unwrap()).await.ok()
}

/// Does what the wish says, and lets the operator work until it rests.
async fn come_true(cluster: &TestCluster, wish: &Wish) {
    for object in &wish.apply {
        let params = PatchParams::apply(&wish.field_manager).force();
        cluster.api::<Memcached>().patch("x", &params, &Patch::Apply(object)).await.unwrap();
    }
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new(app().name()));
    app().install(&mut manager, Namespaces::all());
    let (activity, stop) = (manager.activity(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    let rest = async {
        let mut looks = 0;
        while looks < 5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            looks = if activity.is_quiet() { looks + 1 } else { 0 };
        }
    };
    tokio::time::timeout(PATIENCE, rest).await.unwrap();
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// The changes in short: what, to which object, and whether it was asked for.
fn summary(plan: &Plan) -> Vec<(What, &str, bool)> {
    plan.changes.iter().map(|change| (change.what, change.object.as_str(), change.asked)).collect()
}

/// An object without what is given to each anew.
fn wanted(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "labels" | "ownerReferences"));
    for owner in object["metadata"]["ownerReferences"].as_array_mut().unwrap() {
        owner["uid"] = Value::Null;
    }
    object
}

fn after(plan: &Plan, kind: &str) -> Value {
    let change = plan.changes.iter().find(|change| change.object.starts_with(kind)).unwrap();
    wanted(change.after.clone().unwrap())
}

#[tokio::test]
async fn what_a_new_resource_leads_to_is_what_then_happens() {
    let cluster = cluster().await;
    let plan = foresee(&cluster, &apply(3)).await.unwrap();
    let mut changes = summary(&plan);
    changes.sort_by_key(|(_, object, _)| *object);
    assert_eq!(
        changes,
        [
            (What::Create, "ControllerRevision default/memcached-x-a2e24e9a85", false),
            (What::Create, "Deployment default/x", false),
            (What::Create, "Memcached default/x", true),
            (What::Create, "Service default/x", false),
        ]
    );
    assert!(plan.settled);
    assert_eq!(plan.said, [""; 0], "what was asked for is not news");
    let text = plan.to_string();
    assert!(text.contains("+ Deployment default/x") && text.contains("spec.replicas: 3"), "{text}");
    assert!(text.contains("3 to create, 0 to change, 0 to delete. Nothing was done."), "{text}");

    come_true(&cluster, &apply(3)).await;
    let client = cluster.client();
    assert_eq!(wanted(get(&client, DEPLOYMENT).await.unwrap()), after(&plan, "Deployment"));
    let mut service = wanted(get(&client, SERVICE).await.unwrap());
    let mut planned = after(&plan, "Service");
    for service in [&mut service, &mut planned] {
        service["status"] = Value::Null;
    }
    assert_eq!(service, planned);
    let again = foresee(&cluster, &Wish::default()).await.unwrap();
    assert_eq!(summary(&again), [], "{again}");
    assert!(again.to_string().contains("The operator would change nothing."), "{again}");
}

#[tokio::test]
async fn a_change_is_shown_field_by_field() {
    let cluster = cluster().await;
    come_true(&cluster, &apply(1)).await;
    let plan = foresee(&cluster, &apply(5)).await.unwrap();
    assert_eq!(
        summary(&plan),
        [(What::Change, "Deployment default/x", false), (What::Change, "Memcached default/x", true)]
    );
    assert!(plan.to_string().contains("      spec.replicas: 1 → 5\n"), "{plan}");
    assert!(plan.to_string().contains("0 to create, 1 to change, 0 to delete."), "{plan}");
    come_true(&cluster, &apply(5)).await;
    assert_eq!(wanted(get(&cluster.client(), DEPLOYMENT).await.unwrap())["spec"], after(&plan, "Deployment")["spec"]);
}

#[tokio::test]
async fn what_the_api_would_refuse_is_said_so() {
    let cluster = cluster().await;
    let refused = foresee(&cluster, &apply(99)).await.unwrap_err().to_string();
    assert!(refused.starts_with("the API would refuse Memcached default/x: "), "{refused}");
    assert!(refused.contains("spec.size"), "{refused}");

    let stranger = json!({"apiVersion": "example.com/v1", "kind": "Stranger", "metadata": {"name": "x"}});
    let wish = Wish { apply: vec![stranger], field_manager: "kubectl".into(), ..Wish::default() };
    let unknown = foresee(&cluster, &wish).await.unwrap_err().to_string();
    assert!(unknown.starts_with("the cluster has no Stranger of example.com/v1"), "{unknown}");
}

#[tokio::test]
async fn what_goes_with_a_resource_is_shown() {
    let cluster = cluster().await;
    come_true(&cluster, &apply(1)).await;
    let plan = foresee(&cluster, &Wish { delete: vec![memcached(1)], ..Wish::default() }).await.unwrap();
    let mut changes = summary(&plan);
    changes.sort_by_key(|(_, object, _)| *object);
    assert_eq!(
        changes,
        [
            (What::Delete, "ControllerRevision default/memcached-x-a2e24e9a85", false),
            (What::Delete, "Deployment default/x", false),
            (What::Delete, "Memcached default/x", true),
            (What::Delete, "Service default/x", false),
        ]
    );
    assert!(plan.to_string().contains("- Service default/x (its owner Memcached default/x goes)"), "{plan}");
}

#[tokio::test]
async fn what_was_changed_from_outside_is_put_right() {
    let cluster = cluster().await;
    come_true(&cluster, &apply(2)).await;
    let patch = json!({"spec": {"replicas": 7}}).to_string().into_bytes();
    let request = windlass::runtime::http::Request::patch(DEPLOYMENT)
        .header("content-type", "application/merge-patch+json")
        .body(patch)
        .unwrap();
    cluster.client().request::<Value>(request).await.unwrap();
    let plan = foresee(&cluster, &Wish::default()).await.unwrap();
    assert_eq!(summary(&plan), [(What::Change, "Deployment default/x", false)]);
    assert!(plan.to_string().contains("spec.replicas: 7 → 2"), "{plan}");
}
