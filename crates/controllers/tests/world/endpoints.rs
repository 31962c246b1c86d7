//! Endpoints and EndpointSlices.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::world::{deployment, workloads};

fn ready(slices: &[EndpointSlice], service: &str) -> usize {
    let mine = slices
        .iter()
        .filter(|slice| slice.labels().get("kubernetes.io/service-name").is_some_and(|name| name == service));
    let endpoints = mine.flat_map(|slice| slice.endpoints.iter().flatten());
    endpoints.filter(|endpoint| endpoint.conditions.as_ref().and_then(|one| one.ready) == Some(true)).count()
}

#[tokio::test]
async fn a_service_follows_its_pods() {
    let world = workloads().await;
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}});
    world.create::<Service>(service).await;
    world
        .until_all(|slices: &[EndpointSlice]| {
            slices
                .iter()
                .any(|slice| slice.labels().get("kubernetes.io/service-name").is_some_and(|name| name == "web"))
        })
        .await;
    world.create::<Deployment>(deployment("web", 3, "one")).await;
    let slices = world.until_all(|slices: &[EndpointSlice]| ready(slices, "web") == 3).await;
    let mine: Vec<&EndpointSlice> = slices.iter().filter(|slice| slice.name_any().starts_with("web-")).collect();
    assert_eq!(mine.len(), 1, "one slice is enough: {mine:#?}");
    assert_eq!(mine[0].ports.as_ref().unwrap()[0].port, Some(8080));
    let endpoints = world
        .until("web", |endpoints: &Endpoints| {
            endpoints.subsets.iter().flatten().flat_map(|subset| subset.addresses.iter().flatten()).count() == 3
        })
        .await;
    assert_eq!(endpoints.subsets.unwrap()[0].ports.as_ref().unwrap()[0].port, 8080);

    world.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
    let has_one = |slices: &[EndpointSlice]| {
        let mine = slices.iter().filter(|slice| slice.name_any().starts_with("web-"));
        let all = mine.flat_map(|slice| slice.endpoints.iter().flatten()).count();
        ready(slices, "web") == 1 && all == 1
    };
    world.until_all(has_one).await;
    world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
    world.until_gone::<Endpoints>("web").await;
    world.until_all(|slices: &[EndpointSlice]| slices.iter().all(|slice| !slice.name_any().starts_with("web-"))).await;
    world.stop().await;
}

#[tokio::test]
async fn a_service_without_selector_is_left_alone() {
    let world = workloads().await;
    world.create::<Service>(json!({"metadata": {"name": "mine"}, "spec": {"ports": [{"port": 80}]}})).await;
    let endpoints = json!({"metadata": {"name": "mine"}, "subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}]});
    let mine = world.create::<Endpoints>(endpoints).await;
    // A managed Service that is made later is served later: when it is, the other one has been looked at.
    world
        .create::<Service>(
            json!({"metadata": {"name": "other"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        )
        .await;
    world.until("other", |_: &Endpoints| true).await;
    let now = world.api::<Endpoints>().get("mine").await.unwrap();
    assert_eq!(now.resource_version(), mine.resource_version());
    world.stop().await;
}
