//! CustomResourceDefinitions and their objects, as clients see them.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/cache.example.com/v1alpha1/namespaces/default/memcacheds";

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 16},
                "image": {"type": "string", "default": "memcached:1.6"},
                "class": {"type": "string"},
            },
            "x-kubernetes-validations": [
                {"rule": "!has(self.class) || self.class != 'none'", "message": "class must not be none"},
                {"rule": "!has(oldSelf.class) || (has(self.class) && self.class == oldSelf.class)", "message": "class is fixed"},
            ],
        },
        "status": {"type": "object", "properties": {
            "nodes": {"type": "array", "items": {"type": "string"}},
            "replicas": {"type": "integer"},
            "selector": {"type": "string"},
        }},
    }})
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema()},
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector",
        }},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.class"}],
    })
}

fn definition(versions: Vec<Value>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "memcacheds.cache.example.com"},
        "spec": {
            "group": "cache.example.com", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "memcacheds", "kind": "Memcached", "shortNames": ["mc"], "categories": ["all"]},
        },
    })
}

fn memcached(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec})
}

/// A server with the definition, established.
async fn established(versions: Vec<Value>) -> World {
    let world = World::new().await;
    let created = world.post(DEFINITIONS, &definition(versions)).await.expect(201);
    let mut events = world
        .watch(&format!(
            "{DEFINITIONS}?watch=true&resourceVersion={}",
            created["metadata"]["resourceVersion"].as_str().unwrap()
        ))
        .await;
    loop {
        let event = events.next().await.unwrap();
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True") {
            return world;
        }
    }
}

#[tokio::test]
async fn an_established_kind_is_known_everywhere() {
    let world = established(vec![version("v1alpha1", true)]).await;
    let resources = world.get("/apis/cache.example.com/v1alpha1").await.expect(200);
    let names: Vec<&str> =
        resources["resources"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["memcacheds", "memcacheds/scale", "memcacheds/status"]);
    let document = world.get("/openapi/v3/apis/cache.example.com/v1alpha1").await.expect(200);
    let item = &document["paths"]["/apis/cache.example.com/v1alpha1/namespaces/{namespace}/memcacheds/{name}"];
    let parameters = item["patch"]["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
    let published = &document["components"]["schemas"]["com.example.cache.v1alpha1.Memcached"];
    assert_eq!(published["properties"]["spec"]["properties"]["size"]["maximum"], 16);
    let index = world.get("/openapi/v3").await.expect(200);
    assert!(index["paths"]["apis/cache.example.com/v1alpha1"].is_object());
    let stored = world.get(&format!("{DEFINITIONS}/memcacheds.cache.example.com")).await.expect(200);
    assert_eq!(stored["status"]["acceptedNames"]["listKind"], "MemcachedList");
    assert_eq!(stored["status"]["storedVersions"], json!(["v1alpha1"]));
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_refused() {
    let world = World::new().await;
    let mut wrong = definition(vec![version("v1alpha1", false)]);
    wrong["spec"]["scope"] = "Everywhere".into();
    let refused = world.post(DEFINITIONS, &wrong).await.expect(422);
    let fields: Vec<&str> =
        refused["details"]["causes"].as_array().unwrap().iter().map(|it| it["field"].as_str().unwrap()).collect();
    assert!(fields.contains(&"spec.scope") && fields.contains(&"spec.versions"), "{fields:?}");
    let mut wrong = definition(vec![version("v1alpha1", true)]);
    wrong["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"][0]["rule"] =
        "self.sise > 1".into();
    let refused = world.post(DEFINITIONS, &wrong).await.expect(422);
    assert!(refused["message"].as_str().unwrap().contains("undefined field 'sise'"), "{refused}");
}

#[tokio::test]
async fn objects_are_completed_and_checked() {
    let world = established(vec![version("v1alpha1", true)]).await;
    let created = world.post(OBJECTS, &memcached("a", json!({"size": 3, "unknown": true}))).await.expect(201);
    assert_eq!(created["spec"], json!({"size": 3, "image": "memcached:1.6"}));
    assert_eq!(created["metadata"]["generation"], 1);
    let strict = format!("{OBJECTS}?fieldValidation=Strict");
    let refused = world.post(&strict, &memcached("b", json!({"size": 3, "unknown": true}))).await.expect(400);
    assert!(refused["message"].as_str().unwrap().contains("unknown field \"spec.unknown\""), "{refused}");
    for (spec, expected) in [
        (
            json!({"size": 0}),
            "Memcached.cache.example.com \"b\" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": 1, "class": "none"}),
            "Memcached.cache.example.com \"b\" is invalid: spec: Invalid value: class must not be none",
        ),
    ] {
        let refused = world.post(OBJECTS, &memcached("b", spec)).await.expect(422);
        assert_eq!(refused["message"], expected);
    }
    let refused = world.post(OBJECTS, &memcached("b", json!({"size": "three"}))).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.size");
}

#[tokio::test]
async fn rules_see_what_an_object_was() {
    let world = established(vec![version("v1alpha1", true)]).await;
    world.post(OBJECTS, &memcached("a", json!({"size": 1, "class": "x"}))).await.expect(201);
    let patch = |spec: Value| json!({"spec": spec});
    let path = format!("{OBJECTS}/a");
    let refused = world.patch(&path, "merge-patch+json", &patch(json!({"class": "y"}))).await.expect(422);
    assert!(refused["message"].as_str().unwrap().ends_with("spec: Invalid value: class is fixed"), "{refused}");
    world.patch(&path, "merge-patch+json", &patch(json!({"size": 2}))).await.expect(200);
}

#[tokio::test]
async fn status_and_scale_are_parts_of_their_own() {
    let world = established(vec![version("v1alpha1", true)]).await;
    let mut object = memcached("a", json!({"size": 3}));
    object["status"] = json!({"nodes": ["ignored"]});
    let mut created = world.post(OBJECTS, &object).await.expect(201);
    assert_eq!(created.get("status"), None);
    created["spec"]["size"] = 9.into();
    created["status"] = json!({"nodes": ["n"], "replicas": 3, "selector": "app=a"});
    let status = world.put(&format!("{OBJECTS}/a/status"), &created).await.expect(200);
    assert_eq!((&status["spec"]["size"], &status["status"]["nodes"]), (&json!(3), &json!(["n"])));
    assert_eq!(status["metadata"]["generation"], 1);
    let scale = world.get(&format!("{OBJECTS}/a/scale")).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 3);
    assert_eq!(scale["status"], json!({"replicas": 3, "selector": "app=a"}));
    let scaled = world
        .patch(&format!("{OBJECTS}/a/scale"), "merge-patch+json", &json!({"spec": {"replicas": 5}}))
        .await
        .expect(200);
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    let object = world.get(&format!("{OBJECTS}/a")).await.expect(200);
    assert_eq!((&object["spec"]["size"], &object["metadata"]["generation"]), (&json!(5), &json!(2)));
    world
        .patch(&format!("{OBJECTS}/a/scale"), "merge-patch+json", &json!({"spec": {"replicas": 99}}))
        .await
        .expect(422);
}

#[tokio::test]
async fn columns_and_selectable_fields_are_those_of_the_definition() {
    let world = established(vec![version("v1alpha1", true)]).await;
    world.post(OBJECTS, &memcached("a", json!({"size": 3, "class": "x"}))).await.expect(201);
    world.post(OBJECTS, &memcached("b", json!({"size": 4}))).await.expect(201);
    let table = world.get_as(OBJECTS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.expect(200);
    let columns: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Size", "Age"]);
    assert_eq!(table["rows"][1]["cells"].as_array().unwrap()[..2], [json!("b"), json!(4)]);
    let selected = world.get(&format!("{OBJECTS}?fieldSelector=spec.class%3Dx")).await.expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    world.get(&format!("{OBJECTS}?fieldSelector=spec.image%3Dx")).await.expect(400);
}

#[tokio::test]
async fn an_object_is_there_in_every_version() {
    let world = established(vec![version("v1alpha1", true), version("v1", false)]).await;
    world.post(OBJECTS, &memcached("a", json!({"size": 3}))).await.expect(201);
    let newer = OBJECTS.replace("v1alpha1", "v1");
    let read = world.get(&format!("{newer}/a")).await.expect(200);
    assert_eq!(read["apiVersion"], "cache.example.com/v1");
    let changed =
        world.patch(&format!("{newer}/a"), "merge-patch+json", &json!({"spec": {"size": 4}})).await.expect(200);
    assert_eq!(changed["spec"]["size"], 4);
    let mut object = memcached("b", json!({"size": 1}));
    object["apiVersion"] = "cache.example.com/v1".into();
    world.post(&newer, &object).await.expect(201);
    let entry = world.store.snapshot().get("/cache.example.com/memcacheds/default/b").unwrap().value.clone();
    let stored: Value = serde_json::from_slice(&entry).unwrap();
    assert_eq!(stored["apiVersion"], "cache.example.com/v1alpha1");
    let group = world.get("/apis/cache.example.com").await.expect(200);
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn a_definition_takes_its_objects_along() {
    let world = established(vec![version("v1alpha1", true)]).await;
    world.post(OBJECTS, &memcached("a", json!({"size": 3}))).await.expect(201);
    let mut held = memcached("held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(OBJECTS, &held).await.expect(201);
    let path = format!("{DEFINITIONS}/memcacheds.cache.example.com");
    let mut events = world.watch(&format!("{DEFINITIONS}?watch=true")).await;
    let deleted = world.delete(&path, &Value::Null).await.expect(200);
    assert_eq!(deleted["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    let mut objects = world.watch(&format!("{OBJECTS}?watch=true&fieldSelector=metadata.name%3Dheld")).await;
    while objects.next().await.unwrap()["object"]["metadata"]["deletionTimestamp"].is_null() {}
    world.post(OBJECTS, &memcached("late", json!({"size": 1}))).await.expect(405);
    world
        .patch(&format!("{OBJECTS}/held"), "merge-patch+json", &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    while events.next().await.unwrap()["type"] != "DELETED" {}
    assert_eq!(world.get(&path).await.status, 404);
    assert_eq!(world.store.snapshot().range("/cache.example.com/", None).count(), 0);
}

#[tokio::test]
async fn a_default_that_is_left_out_is_no_change() {
    let world = established(vec![version("v1alpha1", true)]).await;
    let created = world.post(OBJECTS, &memcached("a", json!({"size": 3}))).await.expect(201);
    let mut same = memcached("a", json!({"size": 3}));
    same["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    let replaced = world.put(&format!("{OBJECTS}/a"), &same).await.expect(200);
    assert_eq!(replaced["metadata"]["generation"], 1);
    let path = format!("{OBJECTS}/a?fieldManager=other&force=true");
    let applied = world.patch(&path, "apply-patch+yaml", &memcached("a", json!({"size": 3}))).await.expect(200);
    assert_eq!(applied["metadata"]["generation"], 1);
    let removed = world.patch(&path, "apply-patch+yaml", &memcached("a", json!({"size": 4}))).await.expect(200);
    assert_eq!(removed["metadata"]["generation"], 2);
}

#[tokio::test]
async fn what_comes_by_one_version_gets_the_defaults_of_another_when_it_is_read() {
    let mut other = version("v1", false);
    let spec = &mut other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec.as_object_mut().unwrap().remove("image");
    let world = established(vec![version("v1alpha1", true), other]).await;
    let objects = OBJECTS.replace("v1alpha1", "v1");
    let mut object = memcached("a", json!({"size": 3}));
    object["apiVersion"] = "cache.example.com/v1".into();
    let made = world.post(&objects, &object).await.expect(201);
    assert_eq!(made["spec"], json!({"size": 3}));
    let read = world.get(&format!("{OBJECTS}/a")).await.expect(200);
    assert_eq!(read["spec"], json!({"size": 3, "image": "memcached:1.6"}));
    assert_eq!(world.get(OBJECTS).await.expect(200)["items"][0]["spec"], read["spec"]);
    assert_eq!(world.get(&format!("{objects}/a")).await.expect(200)["spec"], json!({"size": 3}));
}

#[tokio::test]
async fn a_patch_to_another_kind_is_an_object_that_breaks_a_rule() {
    let world = established(vec![version("v1alpha1", true)]).await;
    world.post(OBJECTS, &memcached("a", json!({"size": 3}))).await.expect(201);
    let patch = json!({"kind": "Other"});
    let refused = world.patch(&format!("{OBJECTS}/a"), "merge-patch+json", &patch).await.expect(422);
    assert_eq!(refused["details"]["causes"][0]["field"], "kind");
    assert_eq!(refused["details"]["kind"], "Other");
}
