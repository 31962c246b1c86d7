//! What clients learn of custom kinds, and what an apply of one is held to.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/example.com/v1/namespaces/default/things";

/// A server that knows things of the given schema.
async fn with_things(schema: Value) -> World {
    let world = World::new().await;
    let mut news = world.watch(&format!("{DEFINITIONS}?watch=1")).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    world.post(DEFINITIONS, &definition).await.expect(201);
    let is_established = |event: &Value| {
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Established" && it["status"] == "True")
    };
    while !is_established(&news.next().await.unwrap()) {}
    world
}

fn nested() -> Value {
    json!({"type": "object", "description": "A thing.", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"data": {"type": "string"}}},
    }})
}

#[tokio::test]
async fn objects_are_described_with_what_every_object_has() {
    let world = with_things(nested()).await;
    let document = world.get("/openapi/v3/apis/example.com/v1").await.expect(200);
    let schemas = &document["components"]["schemas"];
    let properties = &schemas["com.example.v1.Thing"]["properties"];
    for properties in [properties, &properties["template"]["properties"]] {
        assert!(properties["apiVersion"]["description"].as_str().unwrap().starts_with("APIVersion defines"));
        assert!(properties["metadata"]["description"].as_str().unwrap().starts_with("Standard object's metadata"));
    }
    assert_eq!(properties["template"]["required"], json!(["kind", "apiVersion"]));
    let meta = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    assert!(meta["creationTimestamp"]["description"].as_str().unwrap().starts_with("CreationTimestamp is a timestamp"));
    let document = world.get("/openapi/v2").await.expect(200);
    let metadata = &document["definitions"]["com.example.v1.Thing"]["properties"]["metadata"];
    assert_eq!(metadata["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
}

#[tokio::test]
async fn older_clients_hear_nothing_of_kinds_that_keep_unknown_fields() {
    let mut schema = nested();
    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
    let world = with_things(schema).await;
    let document = world.get("/openapi/v2").await.expect(200);
    let about = json!([{"group": "example.com", "version": "v1", "kind": "Thing"}]);
    let expected = json!({"type": "object", "x-kubernetes-group-version-kind": about});
    assert_eq!(document["definitions"]["com.example.v1.Thing"], expected);
}

#[tokio::test]
async fn an_apply_names_fields_that_the_kind_does_not_have() {
    let world = with_things(nested()).await;
    let path = format!("{OBJECTS}/a?fieldManager=test&fieldValidation=Ignore");
    let config = |extra: (&str, Value)| {
        let mut config = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
        *config.pointer_mut(extra.0).unwrap() = extra.1;
        config
    };
    for (extra, expected) in [
        (("/metadata", json!({"name": "a", "odd": 1})), ".metadata.odd: field not declared in schema"),
        (
            ("", json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"odd": 1}})),
            ".spec.odd: field not declared in schema",
        ),
    ] {
        let refused = world.patch(&path, "apply-patch+yaml", &config(extra)).await.expect(500);
        let message = refused["message"].as_str().unwrap();
        // It is named as the configuration names it, which need not say a namespace.
        assert!(message.starts_with("failed to create typed patch object (/"), "{message}");
        assert!(message.ends_with(&format!("; example.com/v1, Kind=Thing): {expected}")), "{message}");
    }
}

#[tokio::test]
async fn a_definition_with_odd_conditions_can_still_be_deleted() {
    let world = with_things(nested()).await;
    let path = format!("{DEFINITIONS}/things.example.com");
    let conditions =
        json!({"status": {"conditions": [{"type": "", "status": "", "lastTransitionTime": null, "message": "odd"}]}});
    world.patch(&format!("{path}/status"), "merge-patch+json", &conditions).await.expect(200);
    let mut news = world.watch(&format!("{DEFINITIONS}?watch=1")).await;
    world.delete(&path, &json!({})).await.expect(200);
    while news.next().await.unwrap()["type"] != "DELETED" {}
    world.get(&path).await.expect(404);
}
