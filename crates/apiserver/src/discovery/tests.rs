//! Discovery as clients read it.

use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http_body_util::BodyExt;
use serde_json::json;

use super::*;
use crate::codec::full;
use crate::registry::Registry;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

async fn get(path: &str, headers: &[(http::HeaderName, &str)]) -> (u16, HeaderMap, Value) {
    get_from(Config { address: "127.70.0.1:6443".to_owned(), ..Config::default() }, path, headers).await
}

async fn get_from(config: Config, path: &str, headers: &[(http::HeaderName, &str)]) -> (u16, HeaderMap, Value) {
    let registry = Registry::new();
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
    let response =
        Discovery::default().respond(path, &headers, (&registry.catalog(), &Arc::default()), &config).unwrap();
    let response = response.unwrap_or_else(|error| {
        let mut response = Response::new(full(json_bytes(&error.status())));
        *response.status_mut() = error.code;
        response
    });
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let value = match &body[..] {
        [] => Value::Null,
        binary if protobuf::is_protobuf(binary) => protobuf::decode(binary, None).unwrap(),
        text => serde_json::from_slice(text).unwrap(),
    };
    (parts.status.as_u16(), parts.headers, value)
}

#[tokio::test]
async fn single_documents_for_clients_that_know_no_other() {
    let (_, _, versions) = get("/api", &[]).await;
    assert_eq!(versions["versions"], json!(["v1"]));
    let (_, _, groups) = get("/apis", &[(ACCEPT, "application/json")]).await;
    assert_eq!(groups["kind"], "APIGroupList");
    let apps = groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "apps").unwrap();
    assert_eq!(apps["preferredVersion"], json!({"groupVersion": "apps/v1", "version": "v1"}));
    let (_, _, resources) = get("/apis/apps/v1/", &[]).await;
    let resources = resources["resources"].as_array().unwrap();
    let scale = resources.iter().find(|resource| resource["name"] == "deployments/scale").unwrap();
    assert_eq!((&scale["group"], &scale["kind"]), (&json!("autoscaling"), &json!("Scale")));
    assert_eq!(get("/apis/apps/v9", &[]).await.0, 404);
    assert_eq!(get("/apis/nothing.example.com", &[]).await.0, 404);
    assert_eq!(get("/api/v1", &[]).await.2["groupVersion"], "v1");
    assert_eq!(get("/apis/apps", &[]).await.2["kind"], "APIGroup");
}

#[tokio::test]
async fn one_document_for_clients_that_ask_for_it() {
    let (status, headers, list) = get("/apis", &[(ACCEPT, AGGREGATED)]).await;
    assert_eq!(status, 200);
    assert_eq!(headers[CONTENT_TYPE], "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    let apps = list["items"].as_array().unwrap().iter().find(|group| group["metadata"]["name"] == "apps").unwrap();
    let deployments = apps["versions"][0]["resources"].as_array().unwrap();
    let deployments = deployments.iter().find(|resource| resource["resource"] == "deployments").unwrap();
    assert_eq!(deployments["responseKind"], json!({"group": "apps", "version": "v1", "kind": "Deployment"}));
    assert_eq!(deployments["subresources"][0]["subresource"], "scale");

    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    let (_, headers, list) = get("/api", &[(ACCEPT, old)]).await;
    assert_eq!(headers[CONTENT_TYPE], "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
    assert_eq!(list["items"][0]["metadata"], json!({}));
    assert_eq!(get("/api", &[(ACCEPT, "text/html")]).await.0, 406);
}

#[tokio::test]
async fn the_one_document_can_be_switched_off() {
    let off = Config { aggregated_discovery: false, ..Config::default() };
    let (status, _, groups) = get_from(off.clone(), "/apis", &[(ACCEPT, AGGREGATED)]).await;
    assert_eq!((status, &groups["kind"]), (200, &json!("APIGroupList")));
    assert_eq!(get_from(off, "/api", &[(ACCEPT, AGGREGATED)]).await.2["kind"], "APIVersions");
}

#[tokio::test]
async fn single_documents_have_a_form_in_protobuf() {
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    for path in ["/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"] {
        let (_, headers, binary) = get(path, &[(ACCEPT, accept)]).await;
        assert_eq!(headers[CONTENT_TYPE], protobuf::CONTENT_TYPE, "{path}");
        let (_, _, plain) = get(path, &[]).await;
        assert_eq!(binary["kind"], plain["kind"]);
        assert_eq!(binary["groups"].as_array().map(Vec::len), plain["groups"].as_array().map(Vec::len));
        assert_eq!(binary["resources"], plain["resources"], "{path}");
    }
}

#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let (_, headers, _) = get("/apis", &[(ACCEPT, AGGREGATED)]).await;
    let tag = headers[ETAG].to_str().unwrap().to_owned();
    let (status, _, body) = get("/apis", &[(ACCEPT, AGGREGATED), (IF_NONE_MATCH, &tag)]).await;
    assert_eq!((status, body), (304, Value::Null));
    assert_eq!(get("/apis", &[(ACCEPT, AGGREGATED), (IF_NONE_MATCH, "\"other\"")]).await.0, 200);
}

#[test]
fn other_paths_are_left_alone() {
    let registry = Registry::new();
    for path in ["/", "/version", "/api/v1/pods", "/apis/apps/v1/deployments"] {
        assert!(
            Discovery::default()
                .respond(path, &HeaderMap::new(), (&registry.catalog(), &Arc::default()), &Config::default())
                .is_none(),
            "{path}"
        );
    }
}

#[test]
fn the_order_of_groups_is_upstream() {
    let registry = Registry::new();
    let catalog = registry.catalog();
    let names: Vec<&str> = groups(&catalog).iter().map(|group| group.name).collect();
    assert_eq!(names[..4], ["", "apiregistration.k8s.io", "apps", "events.k8s.io"]);
    let catalog = registry.catalog();
    let groups = groups(&catalog);
    let autoscaling = groups.iter().find(|group| group.name == "autoscaling").unwrap();
    assert_eq!(autoscaling.versions.iter().map(|version| version.version).collect::<Vec<_>>(), ["v2", "v1"]);
}
