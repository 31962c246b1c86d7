//! Custom resources in several versions that a webhook converts.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod hook_server;
mod world;

use hook_server::HookServer;
use serde_json::{Value, json};
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn things(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/things")
}

/// Version 1 has `host: "a:1"`, version 2 has `host` and `port`.
fn definition(server: &HookServer, path: &str, storage: &str) -> Value {
    let version = |name: &str, properties: Value| {
        json!({"name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}})
    };
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [
                version("v1", json!({"hostPort": {"type": "string"}})),
                version("v2", json!({"host": {"type": "string"}, "port": {"type": "string"}})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": server.client_config(path), "conversionReviewVersions": ["v1"]}},
        },
    })
}

fn converted(path: &str, object: &Value, wanted: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = wanted.clone();
    let members = object.as_object_mut().unwrap();
    if *wanted == "example.com/v2" {
        let text = members.remove("hostPort").unwrap();
        let (host, port) = text.as_str().unwrap().split_once(':').unwrap();
        members.insert("host".into(), host.into());
        members.insert("port".into(), port.into());
    } else {
        let text = |value: Option<Value>| value.unwrap().as_str().unwrap().to_owned();
        let joined = format!("{}:{}", text(members.remove("host")), text(members.remove("port")));
        members.insert("hostPort".into(), joined.into());
    }
    if path == "/renames" {
        object["metadata"]["name"] = "other".into();
    }
    object
}

async fn converter() -> HookServer {
    HookServer::start("127.0.0.1", |path, question| {
        let request = &question["request"];
        let objects = request["objects"].as_array().unwrap().iter();
        let objects: Vec<Value> =
            objects.map(|object| converted(path, object, &request["desiredAPIVersion"])).collect();
        let result = if path == "/fails" {
            json!({"status": "Failed", "message": "cannot"})
        } else {
            json!({"status": "Success"})
        };
        json!({"apiVersion": question["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": request["uid"], "result": result, "convertedObjects": objects}})
    })
    .await
}

async fn define(world: &World, definition: &Value) {
    world.post(DEFINITIONS, definition).await.expect(201);
    let mut events = world.watch(&format!("{DEFINITIONS}?watch=true")).await;
    while let Some(event) = events.next().await {
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return;
        }
    }
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name, "labels": {"a": "b"}}, "hostPort": "h:80"})
}

#[tokio::test]
async fn objects_are_there_in_every_version() {
    let (world, server) = (World::new().await, converter().await);
    define(&world, &definition(&server, "/", "v1")).await;
    world.post(&things("v1"), &thing("one")).await.expect(201);
    assert!(server.asked().is_empty(), "the version is the one that is stored");
    let mut events = world.watch(&format!("{}?watch=true", things("v2"))).await;
    let shown = events.next().await.unwrap();
    assert_eq!((&shown["type"], &shown["object"]["port"]), (&json!("ADDED"), &json!("80")));
    let read = world.get(&format!("{}/one", things("v2"))).await.expect(200);
    assert_eq!(
        (&read["apiVersion"], &read["host"], &read["port"]),
        (&json!("example.com/v2"), &json!("h"), &json!("80"))
    );
    assert_eq!(read["metadata"]["labels"], json!({"a": "b"}));
    let two = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "two"}, "host": "i", "port": "81"});
    world.post(&things("v2"), &two).await.expect(201);
    assert_eq!(events.next().await.unwrap()["object"]["host"], "i");
    world.patch(&format!("{}/two", things("v2")), "merge-patch+json", &json!({"port": "82"})).await.expect(200);
    assert_eq!(world.get(&format!("{}/two", things("v1"))).await.expect(200)["hostPort"], "i:82");
    server.asked();
    let list = world.get(&things("v2")).await.expect(200);
    let ports: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|item| &item["port"]).collect();
    assert_eq!(ports, ["80", "82"]);
    assert_eq!(server.asked().len(), 1, "a list is converted at once");
}

#[tokio::test]
async fn a_new_storage_version_is_taken_when_an_object_is_written() {
    let (world, server) = (World::new().await, converter().await);
    define(&world, &definition(&server, "/", "v1")).await;
    let one = world.post(&things("v1"), &thing("one")).await.expect(201);
    let changed = definition(&server, "/", "v2")["spec"].clone();
    let patch = json!({"spec": changed});
    let mut changes = world.api.registry().changes();
    world.patch(&format!("{DEFINITIONS}/things.example.com"), "merge-patch+json", &patch).await.expect(200);
    changes.changed().await.unwrap();
    world.post(&things("v1"), &thing("two")).await.expect(201);
    let stored = |name: &str| -> Value {
        let snapshot = world.store.snapshot();
        serde_json::from_slice(&snapshot.get(&format!("/example.com/things/default/{name}")).unwrap().value).unwrap()
    };
    assert_eq!(stored("one")["apiVersion"], "example.com/v1");
    assert_eq!((&stored("two")["apiVersion"], &stored("two")["port"]), (&json!("example.com/v2"), &json!("80")));
    let list = world.get(&things("v1")).await.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 2, "objects of both versions are listed");
    world.put(&format!("{}/one", things("v1")), &one).await.expect(200);
    assert_eq!(stored("one")["apiVersion"], "example.com/v2", "a write that changes nothing moves the object");
}

#[tokio::test]
async fn a_webhook_that_fails_fails_the_request() {
    let (world, server) = (World::new().await, converter().await);
    let rows = [
        ("/fails", "conversion webhook for example.com/v1, Kind=Thing failed: cannot"),
        (
            "/renames",
            "conversion webhook for example.com/v1, Kind=Thing returned invalid object at index 0: must have the same name: one != other",
        ),
    ];
    for (path, expected) in rows {
        let world_of_row = World::new().await;
        define(&world_of_row, &definition(&server, path, "v1")).await;
        world_of_row.post(&things("v1"), &thing("one")).await.expect(201);
        let failed = world_of_row.get(&format!("{}/one", things("v2"))).await.expect(500);
        assert_eq!(failed["message"], expected);
        world_of_row.get(&things("v2")).await.expect(500);
    }
    let mut wrong = definition(&server, "/", "v1");
    wrong["spec"]["conversion"]["webhook"] =
        json!({"clientConfig": {"url": "http://a", "caBundle": "eA=="}, "conversionReviewVersions": ["v1"]});
    let refused = world.post(DEFINITIONS, &wrong).await.expect(422);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("'https' is the only allowed URL scheme"), "{message}");
    assert!(message.contains("spec.conversion.webhookClientConfig.caBundle"), "{message}");
}
