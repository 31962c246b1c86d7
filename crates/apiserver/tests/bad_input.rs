//! Whatever clients send is answered with a reason, and nothing of it is stored.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

async fn world_with_things() -> World {
    let world = World::new().await;
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let mut changes = world.api.registry().changes();
    world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    while world.api.registry().lookup("example.com", "v1", "things").is_none() {
        changes.changed().await.unwrap();
    }
    world
}

/// Bodies that are not objects of the kind, whatever the kind.
fn bad_bodies(api_version: &str, kind: &str) -> Vec<Value> {
    let with = |metadata: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    vec![
        json!([]),
        json!("text"),
        json!(7),
        json!({"apiVersion": "other/v9", "kind": kind, "metadata": {"name": "a"}}),
        json!({"apiVersion": api_version, "kind": "Other", "metadata": {"name": "a"}}),
        json!({"apiVersion": api_version, "kind": kind}),
        with(json!([])),
        with(json!("text")),
        with(json!({"name": 7})),
        with(json!({"name": ""})),
        with(json!({"name": "../etc/passwd"})),
        with(json!({"name": "a", "labels": []})),
        with(json!({"name": "a", "labels": {"k": 1}})),
        with(json!({"name": "a", "labels": {"k": "not a value"}})),
        with(json!({"name": "a", "annotations": {"k": {}}})),
        with(json!({"name": "a", "finalizers": "text"})),
        with(json!({"name": "a", "finalizers": [1]})),
        with(json!({"name": "a", "finalizers": ["not a name"]})),
        with(json!({"name": "a", "ownerReferences": {}})),
        with(json!({"name": "a", "ownerReferences": [{"name": "x"}]})),
        with(json!({"name": "a", "namespace": "elsewhere"})),
        with(json!({"name": "a", "deletionGracePeriodSeconds": "x"})),
    ]
}

async fn check(world: &World, path: &str, api_version: &str, kind: &str) {
    let before = world.get(path).await.expect(200)["items"].clone();
    for body in bad_bodies(api_version, kind) {
        let answer = world.post(path, &body).await;
        assert!((400..500).contains(&answer.status), "POST {body}: {} {}", answer.status, answer.value);
        assert_eq!(answer.value["kind"], "Status", "{body}");
        assert!(!answer.value["message"].as_str().unwrap().is_empty(), "{body}");
    }
    assert_eq!(world.get(path).await.expect(200)["items"], before);
}

#[tokio::test]
async fn bad_objects_of_built_in_kinds() {
    let world = World::new().await;
    check(&world, CONFIG_MAPS, "v1", "ConfigMap").await;
}

#[tokio::test]
async fn an_object_of_another_namespace_is_refused_by_every_write() {
    let world = World::new().await;
    let body = |namespace: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}});
    world.post(CONFIG_MAPS, &body("default")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let elsewhere = body("elsewhere");
    let answers = [
        world.post(CONFIG_MAPS, &elsewhere).await,
        world.put(&path, &elsewhere).await,
        world.patch(&path, "merge-patch+json", &elsewhere).await,
        world.patch(&format!("{path}?fieldManager=m"), "apply-patch+yaml", &elsewhere).await,
    ];
    for answer in answers {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        assert_eq!(answer.expect(400)["message"], why);
    }
}

#[tokio::test]
async fn bad_objects_of_custom_kinds() {
    let world = world_with_things().await;
    check(&world, THINGS, "example.com/v1", "Thing").await;
}

#[tokio::test]
async fn bad_patches() {
    let world = world_with_things().await;
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 1}});
    let config_map = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    for (path, object) in [(CONFIG_MAPS, &config_map), (THINGS, &thing)] {
        let created = world.post(path, object).await.expect(201);
        let patches = [
            ("json-patch+json", json!({})),
            ("json-patch+json", json!([{"op": "nonsense", "path": "/a"}])),
            ("json-patch+json", json!([{"op": "remove", "path": "/none/at/all"}])),
            ("json-patch+json", json!([{"op": "replace", "path": "/metadata", "value": 7}])),
            ("json-patch+json", json!([{"op": "replace", "path": "", "value": []}])),
            ("merge-patch+json", json!({"metadata": {"labels": "text"}})),
            ("merge-patch+json", json!({"metadata": {"name": "b"}})),
            ("merge-patch+json", json!({"metadata": {"uid": "other"}})),
            ("merge-patch+json", json!({"metadata": {"resourceVersion": "1"}})),
            ("merge-patch+json", json!({"apiVersion": "other/v1"})),
            ("merge-patch+json", json!({"kind": "Other"})),
            ("merge-patch+json", json!(7)),
            ("apply-patch+yaml", json!([])),
            ("apply-patch+yaml", json!({"apiVersion": "other/v1", "kind": "Other"})),
            (
                "apply-patch+yaml",
                json!({"apiVersion": created["apiVersion"], "kind": created["kind"], "metadata": {"name": "b"}}),
            ),
            (
                "apply-patch+yaml",
                json!({"apiVersion": created["apiVersion"], "kind": created["kind"], "metadata": {"labels": 7}}),
            ),
        ];
        for (kind, patch) in patches {
            let answer = world.patch(&format!("{path}/a?fieldManager=m"), kind, &patch).await;
            // A configuration that does not fit its type is a 500 on Kubernetes, too.
            let unfit = answer.status == 500 && answer.value.to_string().contains("failed to create typed patch");
            let refused = (400..500).contains(&answer.status) || unfit;
            assert!(refused, "{path} {kind} {patch}: {} {}", answer.status, answer.value);
        }
        assert_eq!(world.get(&format!("{path}/a")).await.expect(200), created);
    }
}

#[tokio::test]
async fn bad_queries() {
    let world = World::new().await;
    for query in [
        "limit=x",
        "continue=x",
        "resourceVersion=x",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=x&resourceVersion=1",
        "timeoutSeconds=x",
        "labelSelector=%28",
        "fieldSelector=x",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
    ] {
        let answer = world.get(&format!("{CONFIG_MAPS}?{query}")).await;
        assert!((400..500).contains(&answer.status), "{query}: {} {}", answer.status, answer.value);
    }
    // Kubernetes takes this one for a fault of its own.
    world.get(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=x")).await.expect(500);
    for (body, status) in [("{\"gracePeriodSeconds\": ", 400), ("{\"propagationPolicy\": \"Never\"}", 422)] {
        world.send_text("DELETE", &format!("{CONFIG_MAPS}/a"), body).await.expect(status);
    }
}
