//! The API as clients in this process see it.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::World;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn an_object_is_created_read_replaced_and_deleted() {
    let world = World::new().await;
    let created = world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    assert_eq!(created["metadata"]["namespace"], "default");
    assert!(created["metadata"]["uid"].is_string());
    let path = format!("{CONFIG_MAPS}/c");
    let mut object = world.get(&path).await.expect(200);
    assert_eq!(object, created);
    object["data"]["a"] = "2".into();
    let replaced = world.put(&path, &object).await.expect(200);
    assert_ne!(replaced["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    let stale = world.put(&path, &object).await.expect(409);
    assert_eq!(stale["reason"], "Conflict");
    assert_eq!(
        stale["message"],
        "Operation cannot be fulfilled on configmaps \"c\": the object has been modified; please apply your changes to the latest version and try again"
    );
    let deleted = world.delete(&path, &Value::Null).await.expect(200);
    assert_eq!((&deleted["kind"], &deleted["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(world.get(&path).await.expect(404)["message"], "configmaps \"c\" not found");
}

#[tokio::test]
async fn a_change_that_changes_nothing_has_no_revision() {
    let world = World::new().await;
    let created = world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let again = world.put(&format!("{CONFIG_MAPS}/c"), &created).await.expect(200);
    assert_eq!(again, created);
    let patched =
        world.patch(&format!("{CONFIG_MAPS}/c"), "merge-patch+json", &json!({"data": {"a": "1"}})).await.expect(200);
    assert_eq!(patched["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn names_are_made_up_and_taken_names_refused() {
    let world = World::new().await;
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "made-"});
    let made = world.post(CONFIG_MAPS, &object).await.expect(201);
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let taken = world.post(CONFIG_MAPS, &config_map("c")).await.expect(409);
    assert_eq!(
        (&taken["reason"], &taken["message"]),
        (&json!("AlreadyExists"), &json!("configmaps \"c\" already exists"))
    );
    let bad = world.post(CONFIG_MAPS, &config_map("Bad_Name")).await.expect(422);
    assert_eq!(bad["details"]["causes"][0]["field"], "metadata.name");
    let nowhere = world.post("/api/v1/namespaces/nowhere/configmaps", &config_map("c")).await.expect(404);
    assert_eq!(nowhere["message"], "namespaces \"nowhere\" not found");
}

#[tokio::test]
async fn lists_come_in_pages_of_one_revision() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        world.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    let first = world.get(&format!("{CONFIG_MAPS}?limit=2")).await.expect(200);
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap();
    world.delete(&format!("{CONFIG_MAPS}/e"), &Value::Null).await.expect(200);
    let rest = world.get(&format!("{CONFIG_MAPS}?limit=10&continue={token}")).await.expect(200);
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "d", "e"], "the list shows its own moment");
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    world.store.compact(world.store.revision());
    let expired = world.get(&format!("{CONFIG_MAPS}?limit=10&continue={token}")).await.expect(410);
    assert_eq!(expired["reason"], "Expired");
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let now = world.get(&format!("{CONFIG_MAPS}?continue={token}")).await.expect(200);
    assert_eq!(now["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn selectors_select_and_bad_ones_are_refused() {
    let world = World::new().await;
    let mut labelled = config_map("a");
    labelled["metadata"]["labels"] = json!({"app": "web"});
    world.post(CONFIG_MAPS, &labelled).await.expect(201);
    world.post(CONFIG_MAPS, &config_map("b")).await.expect(201);
    let count = async |query: &str| {
        world.get(&format!("{CONFIG_MAPS}?{query}")).await.expect(200)["items"].as_array().unwrap().len()
    };
    assert_eq!(count("labelSelector=app%3Dweb").await, 1);
    assert_eq!(count("labelSelector=!app").await, 1);
    assert_eq!(count("fieldSelector=metadata.name%3Db").await, 1);
    assert_eq!(count("fieldSelector=metadata.name!%3Db").await, 1);
    world.get(&format!("{CONFIG_MAPS}?fieldSelector=data.a%3D1")).await.expect(400);
    world.get(&format!("{CONFIG_MAPS}?labelSelector=a%20b%20c")).await.expect(400);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let world = World::new().await;
    let mut object = config_map("c");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.post(CONFIG_MAPS, &object).await.expect(201);
    let path = format!("{CONFIG_MAPS}/c");
    let marked = world.delete(&path, &Value::Null).await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let again = world.post(CONFIG_MAPS, &config_map("c")).await.expect(409);
    assert_eq!(again["message"], "object is being deleted: configmaps \"c\" already exists");
    let more = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    world.patch(&path, "merge-patch+json", &more).await.expect(422);
    world.patch(&path, "merge-patch+json", &json!({"metadata": {"finalizers": null}})).await.expect(200);
    world.get(&path).await.expect(404);
}

#[tokio::test]
async fn every_kind_of_patch_works() {
    let world = World::new().await;
    world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/c");
    let json_patch =
        json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}]);
    assert_eq!(
        world.patch(&path, "json-patch+json", &json_patch).await.expect(200)["data"],
        json!({"a": "1", "b": "2"})
    );
    let failed = json!([{"op": "test", "path": "/data/a", "value": "x"}]);
    world.patch(&path, "json-patch+json", &failed).await.expect(422);
    let merge = json!({"data": {"a": null, "c": "3"}});
    assert_eq!(world.patch(&path, "merge-patch+json", &merge).await.expect(200)["data"], json!({"b": "2", "c": "3"}));
    let strategic = json!({"data": {"d": "4"}});
    let patched = world.patch(&path, "strategic-merge-patch+json", &strategic).await.expect(200);
    assert_eq!(patched["data"], json!({"b": "2", "c": "3", "d": "4"}));
    world.patch(&path, "unknown", &strategic).await.expect(415);
    world.patch(&format!("{CONFIG_MAPS}/none"), "merge-patch+json", &merge).await.expect(404);
}

#[tokio::test]
async fn apply_creates_merges_and_refuses_to_take() {
    let world = World::new().await;
    let path = |manager: &str, more: &str| format!("{CONFIG_MAPS}/c?fieldManager={manager}{more}");
    let config =
        |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}});
    let made = world.patch(&path("ann", ""), "apply-patch+yaml", &config("1")).await.expect(201);
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "ann");
    let same = world.patch(&path("ann", ""), "apply-patch+yaml", &config("1")).await.expect(200);
    assert_eq!(same["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let refused = world.patch(&path("bob", ""), "apply-patch+yaml", &config("2")).await.expect(409);
    assert_eq!(refused["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let taken = world.patch(&path("bob", "&force=true"), "apply-patch+yaml", &config("2")).await.expect(200);
    assert_eq!(taken["data"]["a"], "2");
    assert!(taken["metadata"].get("generation").is_none());
    let nobody = world.patch(&format!("{CONFIG_MAPS}/c"), "apply-patch+yaml", &config("2")).await.expect(422);
    assert!(nobody["message"].as_str().unwrap().contains("fieldManager"));
}

#[tokio::test]
async fn unknown_and_doubled_fields_are_refused_told_or_ignored() {
    let world = World::new().await;
    let mut object = config_map("c");
    object["unknown"] = 1.into();
    let refused = world.post(&format!("{CONFIG_MAPS}?fieldValidation=Strict"), &object).await.expect(400);
    assert_eq!(
        refused["message"],
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"unknown\""
    );
    let warned = world.post(&format!("{CONFIG_MAPS}?fieldValidation=Warn&dryRun=All"), &object).await;
    assert_eq!(warned.header("warning"), Some("299 - \"unknown field \\\"unknown\\\"\""));
    assert!(warned.expect(201).get("unknown").is_none());
    let ignored = world.post(&format!("{CONFIG_MAPS}?fieldValidation=Ignore"), &object).await;
    assert_eq!(ignored.header("warning"), None);
    ignored.expect(201);
    let doubled = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"},"data":{"a":"1","a":"2"}}"#;
    let refused = world.send_text("POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), doubled).await.expect(400);
    assert!(refused["message"].as_str().unwrap().ends_with("duplicate field \"data.a\""), "{refused}");
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let world = World::new().await;
    let before = world.store.revision();
    world.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("c")).await.expect(201);
    assert_eq!(world.store.revision(), before);
    world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let before = world.store.revision();
    let path = format!("{CONFIG_MAPS}/c?dryRun=All");
    assert_eq!(
        world.patch(&path, "merge-patch+json", &json!({"data": {"a": "9"}})).await.expect(200)["data"]["a"],
        "9"
    );
    world.delete(&path, &Value::Null).await.expect(200);
    world.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("c")).await.expect(409);
    assert_eq!(world.store.revision(), before);
    world.post(&format!("{CONFIG_MAPS}?dryRun=Some"), &config_map("d")).await.expect(422);
    // The body of a deletion silences the query, as on Kubernetes.
    world.delete(&path, &json!({"dryRun": ["All"]})).await.expect(200);
    assert_eq!(world.store.revision(), before);
    world.delete(&path, &json!({"propagationPolicy": "Background"})).await.expect(200);
    world.get(&format!("{CONFIG_MAPS}/c")).await.expect(404);
}

#[tokio::test]
async fn preconditions_guard_a_delete() {
    let world = World::new().await;
    let created = world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let path = format!("{CONFIG_MAPS}/c");
    world.delete(&path, &json!({"preconditions": {"uid": "other"}})).await.expect(409);
    world.delete(&path, &json!({"preconditions": {"resourceVersion": "1"}})).await.expect(409);
    world.delete(&path, &json!({"preconditions": {"uid": created["metadata"]["uid"]}})).await.expect(200);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let world = World::new().await;
    for name in ["a", "b"] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"name": name});
        world.post(CONFIG_MAPS, &object).await.expect(201);
    }
    world.delete(&format!("{CONFIG_MAPS}?labelSelector=name%3Da"), &Value::Null).await.expect(200);
    world.get(&format!("{CONFIG_MAPS}/a")).await.expect(404);
    world.get(&format!("{CONFIG_MAPS}/b")).await.expect(200);
}

#[tokio::test]
async fn what_is_not_served_is_not_found_or_not_allowed() {
    let world = World::new().await;
    for path in ["/api/v1/unknowns", "/apis/none/v1/things", "/nowhere", "/api/v1/namespaces/default/nodes"] {
        assert_eq!(world.get(path).await.expect(404)["reason"], "NotFound", "{path}");
    }
    world.post(&format!("{CONFIG_MAPS}/c"), &config_map("c")).await.expect(405);
    world.get("/api/v1/namespaces/default/pods/p/nothing").await.expect(404);
    world.post("/api/v1/configmaps", &config_map("c")).await.expect(405);
    world.get("/api/v1/configmaps/c").await.expect(404);
    world.send_text("POST", CONFIG_MAPS, "{").await.expect(400);
    world.send_text("POST", CONFIG_MAPS, "[]").await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_at_the_same_time_all_count() {
    let world = World::new().await;
    world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    let world = std::sync::Arc::new(world);
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let world = std::sync::Arc::clone(&world);
            tokio::spawn(async move {
                let patch = json!({"data": {format!("k{number}"): "x"}});
                world.patch(&format!("{CONFIG_MAPS}/c"), "merge-patch+json", &patch).await.expect(200);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let object = world.get(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    assert_eq!(object["data"].as_object().unwrap().len(), 17);
}

#[tokio::test]
async fn the_right_to_patch_is_not_the_right_to_create() {
    let world = World::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}]});
    world.post(&format!("{roles}/roles"), &role).await.expect(201);
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    world.post(&format!("{roles}/rolebindings"), &binding).await.expect(201);
    let ann = world.user("ann");
    let path = format!("{CONFIG_MAPS}/c?fieldManager=ann");
    let refused = ann.patch(&path, "apply-patch+yaml", &config_map("c")).await.expect(403);
    assert!(refused["message"].as_str().unwrap().contains("cannot create resource \"configmaps\""), "{refused}");
    world.post(CONFIG_MAPS, &config_map("c")).await.expect(201);
    ann.patch(&path, "merge-patch+json", &json!({"data": {"b": "2"}})).await.expect(200);
    ann.delete(&format!("{CONFIG_MAPS}/c"), &Value::Null).await.expect(403);
}

#[tokio::test]
async fn questions_have_no_tables() {
    let world = World::new().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let question = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    assert_eq!(world.post(path, &question).await.expect(201)["status"]["allowed"], true);
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    world.post_as(path, accept, &question).await.expect(406);
    world.get_as(CONFIG_MAPS, "text/html").await.expect(406);
}

#[tokio::test]
async fn an_object_with_a_version_is_not_new_except_for_a_rehearsal() {
    let world = World::new().await;
    let mut object = config_map("c");
    object["metadata"]["resourceVersion"] = "7".into();
    let refused = world.post(CONFIG_MAPS, &object).await.expect(500);
    assert_eq!(refused["message"], "resourceVersion should not be set on objects to be created");
    assert!(refused.get("reason").is_none(), "{refused}");
    world.post(&format!("{CONFIG_MAPS}?dryRun=All"), &object).await.expect(201);
    object["metadata"]["resourceVersion"] = "0".into();
    world.post(CONFIG_MAPS, &object).await.expect(201);
}

#[tokio::test]
async fn a_configuration_with_unknown_fields_is_not_applied() {
    let world = World::new().await;
    let path = format!("{CONFIG_MAPS}/c?fieldManager=ann");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "dat": {}});
    let refused = world.patch(&path, "apply-patch+yaml", &config).await.expect(500);
    let expected = "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .dat: field not declared in schema";
    assert_eq!(refused["message"], expected);
}

#[tokio::test]
async fn answers_of_built_in_kinds_begin_with_their_kind() {
    let world = World::new().await;
    let answer = world.open("GET", "/api/v1/namespaces/default", "application/json", "").await;
    let text = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
    assert!(text.starts_with(br#"{"kind":"Namespace","apiVersion":"v1","metadata":{"#), "{text:?}");
    let object: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(object["metadata"]["name"], "default");
    assert!(object["metadata"]["resourceVersion"].is_string());
}
