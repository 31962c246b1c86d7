//! Answers in protobuf: the same objects as in JSON.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use windlass_schema::protobuf::{CONTENT_TYPE, decode, read_watch_event};
use world::World;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The answer to a GET as protobuf, decoded.
async fn protobuf(world: &World, method: &str, path: &str, accept: &str) -> (u16, Value) {
    let response = world.open_as(method, path, accept).await;
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], CONTENT_TYPE, "{path}");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, decode(&bytes, None).unwrap())
}

/// Without what only JSON repeats.
fn bare(mut list: Value) -> Value {
    for item in list["items"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().retain(|name, _| name != "apiVersion" && name != "kind");
    }
    list
}

#[tokio::test]
async fn objects_lists_and_errors_are_the_same_in_protobuf() {
    let world = World::new().await;
    world.post(MAPS, &json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}})).await.expect(201);
    for path in ["/api/v1/namespaces/default/configmaps/a", "/api/v1/namespaces/default"] {
        let plain = world.get(path).await.expect(200);
        assert_eq!(protobuf(&world, "GET", path, CONTENT_TYPE).await, (200, plain), "{path}");
    }
    for path in [MAPS, "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/services", "/api/v1/endpoints"] {
        let plain = world.get(path).await.expect(200);
        let (status, list) = protobuf(&world, "GET", path, "application/vnd.kubernetes.protobuf, */*").await;
        assert_eq!((status, bare(list)), (200, bare(plain)), "{path}");
    }
    let (status, missing) = protobuf(&world, "GET", &format!("{MAPS}/none"), CONTENT_TYPE).await;
    assert_eq!((status, &missing["reason"]), (404, &json!("NotFound")));
    assert_eq!(missing["details"]["name"], "none");
    let (_, metadata) = protobuf(&world, "GET", &format!("{MAPS}/a"), METADATA).await;
    assert_eq!((&metadata["kind"], &metadata["metadata"]["name"]), (&json!("PartialObjectMetadata"), &json!("a")));
    assert!(metadata["data"].is_null());
    let (status, deleted) = protobuf(&world, "DELETE", &format!("{MAPS}/a"), CONTENT_TYPE).await;
    assert_eq!((status, &deleted["status"]), (200, &json!("Success")));
}

#[tokio::test]
async fn a_watch_sends_frames() {
    let world = World::new().await;
    let response = world
        .open_as(
            "GET",
            &format!(
                "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            ),
            CONTENT_TYPE,
        )
        .await;
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    world.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let (mut body, mut bytes) = (response.into_body(), Vec::new());
    let mut seen = Vec::new();
    while seen.len() < 2 {
        bytes.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
        while let Some(length) = bytes.first_chunk().map(|length| u32::from_be_bytes(*length) as usize)
            && bytes.len() >= 4 + length
        {
            let frame: Vec<u8> = bytes.drain(..4 + length).collect();
            let (event_type, object) = read_watch_event(&frame[4..]).unwrap();
            seen.push((event_type, decode(object, None).unwrap()));
        }
    }
    assert_eq!(seen[0].0, "BOOKMARK");
    assert_eq!(seen[0].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!((seen[1].0.as_str(), &seen[1].1["metadata"]["name"]), ("ADDED", &json!("a")));
    assert_eq!(seen[1].1["kind"], "ConfigMap");
}

#[tokio::test]
async fn custom_objects_stay_json() {
    let world = World::new().await;
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut events = world.watch(&format!("{definitions}?watch=1")).await;
    world.post(definitions, &definition).await.expect(201);
    while !events.next().await.unwrap()["object"]["status"]["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    }) {}
    let things = "/apis/example.com/v1/things";
    world
        .post(things, &json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}))
        .await
        .expect(201);
    let response = world.get_as(&format!("{things}/t"), "application/vnd.kubernetes.protobuf, application/json").await;
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(world.open_as("GET", things, CONTENT_TYPE).await.status(), 406);
    let (_, metadata) = protobuf(&world, "GET", &format!("{things}/t"), METADATA).await;
    assert_eq!(metadata["metadata"]["name"], "t");
}
