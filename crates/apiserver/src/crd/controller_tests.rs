//! The controller over a real store.

use serde_json::json;
use windlass_store::Expect;

use super::*;
use crate::crd::strategy;

fn definition(plural: &str, kind: &str, group: &str) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "uid": "u", "managedFields": [
            {"manager": "m", "operation": "Update", "apiVersion": "apiextensions.k8s.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}},
        ]},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind, "shortNames": ["s"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    strategy::prepare_create(&mut definition);
    definition
}

struct World {
    store: Store,
    registry: Arc<Registry>,
    stop: CancellationToken,
}

impl World {
    fn start() -> Self {
        let world =
            Self { store: Store::in_memory(), registry: Arc::new(Registry::new()), stop: CancellationToken::new() };
        world.run();
        world
    }

    fn run(&self) {
        tokio::spawn(run(self.store.clone(), Arc::clone(&self.registry), Clock::system(), self.stop.clone()));
    }

    async fn put(&self, key: &str, object: &Value) {
        let write = Write { key: key.into(), expect: Expect::Any, value: Some(json_bytes(object)) };
        self.store.commit(vec![write]).await.unwrap();
    }

    async fn add(&self, object: &Value) -> String {
        let key = format!("{}{}", prefix(), object["metadata"]["name"].as_str().unwrap());
        self.put(&key, object).await;
        key
    }

    fn get(&self, key: &str) -> Option<Value> {
        self.store.snapshot().get(key).map(|entry| serde_json::from_slice(&entry.value).unwrap())
    }

    /// Waits until the object at `key` (or its absence) is as wanted.
    async fn until(&self, key: &str, wanted: impl Fn(Option<&Value>) -> bool) -> Option<Value> {
        let mut watch = self.store.watch("/", self.store.snapshot().revision()).unwrap();
        loop {
            let object = self.get(key);
            if wanted(object.as_ref()) {
                return object;
            }
            let event = tokio::time::timeout(std::time::Duration::from_secs(10), watch.next()).await;
            event.expect("the wanted state comes").unwrap();
        }
    }
}

fn is(object: Option<&Value>, kind: &str, status: &str) -> bool {
    let definition = object.and_then(|object| Definition::read(object).ok());
    definition.is_some_and(|definition| definition.condition(kind).is_some_and(|found| found.status == status))
}

#[tokio::test]
async fn a_kind_is_served_before_it_is_established() {
    let world = World::start();
    let key = world.add(&definition("cats", "Cat", "example.com")).await;
    let established = world.until(&key, |object| is(object, "Established", "True")).await.unwrap();
    assert!(world.registry.lookup("example.com", "v1", "cats").is_some());
    assert_eq!(established["status"]["acceptedNames"]["plural"], "cats");
    assert_eq!(established["status"]["storedVersions"], json!(["v1"]));
    let owners = established["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().any(|owner| owner["manager"] == "kube-apiserver" && owner["subresource"] == "status"));
}

#[tokio::test]
async fn a_name_in_use_is_given_when_it_is_free() {
    let world = World::start();
    let first = world.add(&definition("cats", "Cat", "example.com")).await;
    world.until(&first, |object| is(object, "Established", "True")).await;
    let second = world.add(&definition("kittens", "Cat", "example.com")).await;
    let refused = world.until(&second, |object| is(object, "NamesAccepted", "False")).await;
    assert!(is(refused.as_ref(), "Established", "False"));
    assert!(world.registry.lookup("example.com", "v1", "kittens").is_none());
    let revision = world.store.snapshot().get(&first).unwrap().modified;
    world.store.commit(vec![Write::delete(&first, revision)]).await.unwrap();
    world.until(&second, |object| is(object, "Established", "True")).await;
    assert!(world.registry.lookup("example.com", "v1", "cats").is_none());
    assert!(world.registry.lookup("example.com", "v1", "kittens").is_some());
}

#[tokio::test]
async fn a_deleted_definition_goes_after_its_objects() {
    let world = World::start();
    let key = world.add(&definition("cats", "Cat", "example.com")).await;
    let mut stored = world.until(&key, |object| is(object, "Established", "True")).await.unwrap();
    let object =
        |name: &str, finalizers: Value| json!({"metadata": {"name": name, "finalizers": finalizers, "generation": 1}});
    world.put("/example.com/cats/a/free", &object("free", json!([]))).await;
    world.put("/example.com/cats/a/held", &object("held", json!(["x/y"]))).await;
    strategy::begin_deletion(&mut stored, Timestamp::UNIX_EPOCH);
    stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    world.put(&key, &stored).await;
    let held = world
        .until("/example.com/cats/a/held", |object| {
            object.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string())
        })
        .await;
    assert_eq!(held.unwrap()["metadata"]["generation"], 2);
    world.until("/example.com/cats/a/free", |object| object.is_none()).await;
    let terminating = world.get(&key);
    assert!(is(terminating.as_ref(), "Terminating", "True"));
    assert!(world.registry.lookup("example.com", "v1", "cats").unwrap().custom().unwrap().is_terminating);
    let revision = world.store.snapshot().get("/example.com/cats/a/held").unwrap().modified;
    world.store.commit(vec![Write::delete("/example.com/cats/a/held", revision)]).await.unwrap();
    world.until(&key, |object| object.is_none()).await;
    let mut changes = world.registry.changes();
    while world.registry.lookup("example.com", "v1", "cats").is_some() {
        changes.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_restart_serves_what_was_established() {
    let world = World::start();
    let key = world.add(&definition("cats", "Cat", "example.com")).await;
    world.until(&key, |object| is(object, "Established", "True")).await;
    let registry = Registry::new();
    restore(&world.store.snapshot(), &registry);
    assert!(registry.lookup("example.com", "v1", "cats").is_some());
}

#[tokio::test]
async fn a_changed_definition_changes_what_is_served() {
    let world = World::start();
    let key = world.add(&definition("cats", "Cat", "example.com")).await;
    let mut stored = world.until(&key, |object| is(object, "Established", "True")).await.unwrap();
    let before = world.registry.lookup("example.com", "v1", "cats").unwrap();
    let mut changes = world.registry.changes();
    changes.mark_unchanged();
    stored["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    world.put(&key, &stored).await;
    changes.changed().await.unwrap();
    let after = world.registry.lookup("example.com", "v1", "cats").unwrap();
    assert!(!before.is_same(&after) && after.subresource("status").is_some());
}

#[tokio::test]
async fn a_restart_goes_on_with_a_deletion() {
    let world =
        World { store: Store::in_memory(), registry: Arc::new(Registry::new()), stop: CancellationToken::new() };
    let mut stored = definition("cats", "Cat", "example.com");
    stored["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    strategy::begin_deletion(&mut stored, Timestamp::UNIX_EPOCH);
    stored["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let key = world.add(&stored).await;
    world.put("/example.com/cats/a/left", &json!({"metadata": {"name": "left"}})).await;
    world.run();
    world.until(&key, |object| object.is_none()).await;
    assert_eq!(world.get("/example.com/cats/a/left"), None);
}
