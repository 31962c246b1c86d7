//! What nodes and Pods use, as `metrics.k8s.io` tells it.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use windlass_testkit::{PATIENCE, Profile, TestCluster, until};

use super::world::{template, workloads};

const GROUP: &str = "/apis/metrics.k8s.io/v1beta1";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn ask(client: &Client, path: &str, accept: &str) -> Result<Value, u16> {
    let request = Request::get(path).header("accept", accept).body(vec![]).unwrap();
    match client.request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

async fn get(client: &Client, path: &str) -> Result<Value, u16> {
    ask(client, &format!("{GROUP}/{path}"), "application/json").await
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// Two Pods, the first with two containers.
async fn pods(world: &TestCluster) {
    for (name, cpu) in [("a", "250m"), ("b", "1")] {
        let mut pod = template(name, "one");
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["annotations"] = json!({"windlass.dev/fake-cpu": cpu, "windlass.dev/fake-memory": "64Mi"});
        if name == "a" {
            pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "beside", "image": "two"}));
        }
        world.create::<Pod>(pod).await;
    }
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    world.until_all(|pods: &[Pod]| pods.iter().all(|pod| phase(pod).as_deref() == Some("Running"))).await;
    // The nodes learn of it from a cache of their own.
    eventually(async || names(&get(&world.client(), "namespaces/default/pods").await.unwrap()).len() == 2).await;
}

/// Waits for what nothing tells of.
async fn eventually(holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it does not come to that");
}

#[tokio::test]
async fn pods_and_nodes_tell_what_they_use() {
    let world = workloads().await;
    pods(&world).await;
    let client = world.client();
    let one = get(&client, "namespaces/default/pods/a").await.unwrap();
    assert_eq!((&one["kind"], &one["window"]), (&json!("PodMetrics"), &json!("15s")));
    let usage = json!({"cpu": "250m", "memory": "64Mi"});
    assert_eq!(one["containers"], json!([{"name": "main", "usage": usage}, {"name": "beside", "usage": usage}]));
    let all = get(&client, "pods").await.unwrap();
    assert_eq!((all["kind"].as_str(), names(&all)), (Some("PodMetricsList"), vec!["a", "b"]));
    assert_eq!(names(&get(&client, "pods?labelSelector=app%3Db").await.unwrap()), ["b"]);
    assert_eq!(names(&get(&client, "pods?fieldSelector=metadata.name%3Da").await.unwrap()), ["a"]);
    assert_eq!(get(&client, "pods?fieldSelector=spec.nodeName%3Da").await, Err(400));
    assert!(names(&get(&client, "namespaces/kube-system/pods").await.unwrap()).is_empty());
    assert_eq!(get(&client, "namespaces/default/pods/nobody").await, Err(404));
    assert_eq!(get(&client, "pods?watch=true").await, Err(405));
    let node = get(&client, "nodes/fake-node-0").await.unwrap();
    assert_eq!(node["usage"], json!({"cpu": "1500m", "memory": "192Mi"}));
    let table = ask(&client, &format!("{GROUP}/namespaces/default/pods"), TABLE).await.unwrap();
    assert_eq!(table["rows"][0]["cells"], json!(["a", "500m", "128Mi", "15s"]));
    let group = ask(&client, GROUP, "application/json").await.unwrap();
    assert_eq!(group["resources"][0]["verbs"], json!(["get", "list"]));
    world.stop().await;
}

#[tokio::test]
async fn who_may_view_a_namespace_may_see_what_its_pods_use() {
    let world = workloads().await;
    pods(&world).await;
    let ann = world.client_as("ann", &["people"]);
    assert_eq!(get(&ann, "namespaces/default/pods").await, Err(403));
    world
        .create::<RoleBinding>(json!({"metadata": {"name": "ann"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]}))
        .await;
    assert_eq!(names(&get(&ann, "namespaces/default/pods").await.unwrap()).len(), 2);
    assert_eq!(get(&ann, "pods").await, Err(403));
    assert_eq!(get(&ann, "nodes").await, Err(403));
    world.stop().await;
}

#[tokio::test]
async fn another_server_can_take_the_group_and_give_it_back() {
    let world = workloads().await;
    pods(&world).await;
    let services: Api<APIService> = Api::all(world.client());
    let name = "v1beta1.metrics.k8s.io";
    let reason = |all: &[APIService], wanted: &str| {
        let own = all.iter().find(|it| it.metadata.name.as_deref() == Some(name));
        let conditions = own.and_then(|it| it.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|it| it.reason.as_deref() == Some(wanted))
    };
    until(services.clone(), |all: &[APIService]| reason(all, "Local")).await;
    let taken = json!({"spec": {"insecureSkipTLSVerify": true, "service": {"namespace": "kube-system", "name": "metrics-server"}}});
    services.patch(name, &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    until(services.clone(), |all: &[APIService]| reason(all, "ServiceNotFound")).await;
    assert_eq!(get(&world.client(), "nodes").await, Err(503));
    services.delete(name, &DeleteParams::default()).await.unwrap();
    until(services, |all: &[APIService]| reason(all, "Local")).await;
    eventually(async || get(&world.client(), "nodes").await.is_ok()).await;
    world.stop().await;
}

#[tokio::test]
async fn a_cluster_without_nodes_has_no_such_group() {
    let world = TestCluster::builder().profile(Profile::Gc).start().await;
    assert_eq!(get(&world.client(), "nodes").await, Err(404));
    world.stop().await;
}
