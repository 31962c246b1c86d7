//! Watches as clients see them.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str, app: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": app}}})
}

fn pair(event_type: &str, name: &str) -> (String, String) {
    (event_type.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_watch_from_a_list_tells_what_happens_after_it() {
    let world = World::new().await;
    world.post(CONFIG_MAPS, &config_map("before", "x")).await.expect(201);
    let list = world.get(CONFIG_MAPS).await.expect(200);
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    world.post(CONFIG_MAPS, &config_map("a", "x")).await.expect(201);
    let mut events = world.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}")).await;
    world.patch(&format!("{CONFIG_MAPS}/a"), "merge-patch+json", &json!({"data": {"k": "v"}})).await.expect(200);
    world.post("/api/v1/namespaces/kube-system/configmaps", &config_map("elsewhere", "x")).await.expect(201);
    let deleted = world.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.expect(200);
    assert_eq!(events.next_name().await, pair("ADDED", "a"));
    assert_eq!(events.next_name().await, pair("MODIFIED", "a"));
    let gone = events.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["uid"], deleted["details"]["uid"]);
    let current = world.store.revision().to_string();
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], current, "a deletion has a revision of its own");
}

#[tokio::test]
async fn objects_enter_and_leave_what_is_selected() {
    let world = World::new().await;
    let mut events = world.watch(&format!("{CONFIG_MAPS}?watch=1&labelSelector=app%3Dweb")).await;
    world.post(CONFIG_MAPS, &config_map("a", "other")).await.expect(201);
    let relabel = async |app: &str| {
        let patch = json!({"metadata": {"labels": {"app": app}}});
        world.patch(&format!("{CONFIG_MAPS}/a"), "merge-patch+json", &patch).await.expect(200)
    };
    relabel("web").await;
    world.patch(&format!("{CONFIG_MAPS}/a"), "merge-patch+json", &json!({"data": {"k": "v"}})).await.expect(200);
    relabel("other").await;
    world.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.expect(200);
    world.post(CONFIG_MAPS, &config_map("b", "web")).await.expect(201);
    assert_eq!(events.next_name().await, pair("ADDED", "a"));
    assert_eq!(events.next_name().await, pair("MODIFIED", "a"));
    assert_eq!(events.next_name().await, pair("DELETED", "a"));
    assert_eq!(events.next_name().await, pair("ADDED", "b"));
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_marked_bookmark() {
    let world = World::new().await;
    for name in ["a", "b"] {
        world.post(CONFIG_MAPS, &config_map(name, "x")).await.expect(201);
    }
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = world.watch(&format!("{CONFIG_MAPS}?{query}")).await;
    assert_eq!(events.next_name().await, pair("ADDED", "a"));
    assert_eq!(events.next_name().await, pair("ADDED", "b"));
    let mark = events.next().await.unwrap();
    assert_eq!((&mark["type"], &mark["object"]["kind"]), (&json!("BOOKMARK"), &json!("ConfigMap")));
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(mark["object"]["metadata"]["resourceVersion"], world.store.revision().to_string());
    world.post(CONFIG_MAPS, &config_map("c", "x")).await.expect(201);
    assert_eq!(events.next_name().await, pair("ADDED", "c"));
    let wrong = world.get(&format!("{CONFIG_MAPS}?watch=1&sendInitialEvents=true")).await;
    assert_eq!(wrong.expect(422)["details"]["causes"][0]["field"], "resourceVersionMatch");
}

#[tokio::test]
async fn a_watch_from_the_compacted_past_says_so() {
    let world = World::new().await;
    world.post(CONFIG_MAPS, &config_map("a", "x")).await.expect(201);
    world.store.compact(world.store.revision());
    let mut events = world.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=1")).await;
    let error = events.next().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(error["object"]["reason"], "Expired");
    assert!(events.next().await.is_none());
    let mut events = world.watch("/api/v1/namespaces/default/events?watch=1&resourceVersion=1").await;
    let message = "The resourceVersion for the provided watch is too old.";
    assert_eq!(events.next().await.unwrap()["object"]["message"], message);
}

#[tokio::test]
async fn a_watch_ends_in_time_with_a_last_bookmark() {
    let world = World::new().await;
    let mut events = world
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=2"))
        .await;
    world.post("/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "s"}})).await.expect(201);
    let revision = world.store.revision().to_string();
    let bookmark = events.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], revision, "it follows writes to other kinds");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_shutdown_ends_every_watch() {
    let world = World::new().await;
    let mut events = world.watch(&format!("{CONFIG_MAPS}?watch=1&resourceVersion=2")).await;
    world.api.shutdown().cancel();
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn tables_have_headings_once() {
    let world = World::new().await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    world.post(CONFIG_MAPS, &config_map("a", "x")).await.expect(201);
    world.post(CONFIG_MAPS, &config_map("b", "x")).await.expect(201);
    let table = world.get_as(CONFIG_MAPS, accept).await.expect(200);
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][1]["cells"][0], "b");
    let mut events = world.watch_as(&format!("{CONFIG_MAPS}?watch=1"), accept).await;
    let (first, second) = (events.next().await.unwrap(), events.next().await.unwrap());
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert!(second["object"]["columnDefinitions"].is_null());
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn a_name_in_the_watch_path_selects_one_object() {
    let world = World::new().await;
    for name in ["a", "b"] {
        world.post(CONFIG_MAPS, &config_map(name, "x")).await.expect(201);
    }
    let mut events = world.watch(&format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Db")).await;
    assert_eq!(events.next_name().await, pair("ADDED", "b"));
}

#[tokio::test]
async fn the_first_write_to_a_claim_is_always_seen() {
    let world = World::new().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, "spec": spec});
    let made = world.post(claims, &claim).await.expect(201);
    let nothing = json!({"metadata": {}});
    let patch = async || world.patch(&format!("{claims}/a"), "merge-patch+json", &nothing).await.expect(200);
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let first = version(&patch().await);
    assert_ne!(first, version(&made));
    assert_eq!(version(&patch().await), first);
}
