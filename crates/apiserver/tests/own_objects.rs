//! The objects that the server itself looks after.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use windlass_apiserver::system::Component;
use world::{Events, World};

const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// Waits until an object of the watch is as wanted.
async fn until(events: &mut Events, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = events.next().await.unwrap();
        if wanted(&event) {
            return event["object"].clone();
        }
    }
}

#[tokio::test]
async fn every_answer_names_its_flow() {
    let world = World::new().await;
    let uid = |object: Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let schemas = world.get(&format!("{FLOWS}/flowschemas")).await.expect(200);
    assert_eq!(schemas["items"].as_array().unwrap().len(), 11);
    assert_eq!(
        world.get(&format!("{FLOWS}/prioritylevelconfigurations")).await.expect(200)["items"].as_array().unwrap().len(),
        8
    );
    for (user, schema, level) in [
        ("", "exempt", "exempt"),
        ("ann", "global-default", "global-default"),
        ("system:serviceaccount:kube-system:x", "kube-system-service-accounts", "workload-high"),
    ] {
        let client = if user.is_empty() { None } else { Some(world.user(user)) };
        let answer = client.as_ref().unwrap_or(&world).get("/api/v1/namespaces/default/pods").await;
        let schema = uid(world.get(&format!("{FLOWS}/flowschemas/{schema}")).await.expect(200));
        let level = uid(world.get(&format!("{FLOWS}/prioritylevelconfigurations/{level}")).await.expect(200));
        assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), Some(schema.as_str()), "{user}");
        assert_eq!(answer.header("x-kubernetes-pf-prioritylevel-uid"), Some(level.as_str()), "{user}");
    }
}

#[tokio::test]
async fn flow_schemas_say_whether_their_level_exists_and_the_mandatory_ones_come_back() {
    let world = World::new().await;
    let path = format!("{FLOWS}/flowschemas");
    let dangling = |status: &'static str| {
        move |event: &Value| {
            event["object"]["status"]["conditions"].as_array().is_some_and(|conditions| {
                conditions.iter().any(|condition| condition["type"] == "Dangling" && condition["status"] == status)
            })
        }
    };
    let mut events = world.watch(&format!("{path}?watch=1&fieldSelector=metadata.name=mine")).await;
    let schema = json!({"metadata": {"name": "mine"}, "spec": {"priorityLevelConfiguration": {"name": "none"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "x"}}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}});
    world.post(&path, &schema).await.expect(201);
    until(&mut events, dangling("True")).await;
    let level = json!({"metadata": {"name": "none"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}});
    world.post(&format!("{FLOWS}/prioritylevelconfigurations"), &level).await.expect(201);
    until(&mut events, dangling("False")).await;

    let mut events = world.watch(&format!("{path}?watch=1&fieldSelector=metadata.name=catch-all")).await;
    let before = events.next().await.unwrap()["object"]["metadata"]["uid"].clone();
    world.delete(&format!("{path}/catch-all"), &Value::Null).await.expect(200);
    let again = until(&mut events, |event| event["type"] == "ADDED").await;
    assert_ne!(again["metadata"]["uid"], before);
}

#[tokio::test]
async fn every_group_has_an_api_service_while_it_is_served() {
    let world = World::new().await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let named = |name: &'static str, kind: &'static str| {
        move |event: &Value| event["object"]["metadata"]["name"] == name && event["type"] == kind
    };
    let mut events = world.watch(&format!("{services}?watch=1")).await;
    let apps = until(&mut events, named("v1.apps", "ADDED")).await;
    assert_eq!(
        apps["spec"],
        json!({"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15})
    );
    assert_eq!(
        (&apps["status"]["conditions"][0]["type"], &apps["status"]["conditions"][0]["status"]),
        (&json!("Available"), &json!("True"))
    );
    world.delete(&format!("{services}/v1.apps"), &Value::Null).await.expect(200);
    until(&mut events, named("v1.apps", "ADDED")).await;
    let definition = json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.post(definitions, &definition).await.expect(201);
    until(&mut events, named("v1.example.com", "ADDED")).await;
    world.delete(&format!("{definitions}/things.example.com"), &Value::Null).await.expect(200);
    until(&mut events, named("v1.example.com", "DELETED")).await;
}

#[tokio::test]
async fn requests_are_logged_as_the_policy_wants() {
    let folder = std::env::temp_dir().join(format!("windlass-audit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("audit.log");
    let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None, verbs: [get]}, {level: Metadata}]}";
    let policy = windlass_apiserver::audit::Policy::parse(policy).unwrap();
    let log = windlass_apiserver::audit::AuditLog::open(&path, policy).unwrap();
    let world =
        World::with(windlass_apiserver::Config { audit: Some(std::sync::Arc::new(log)), ..Default::default() }).await;
    world.get("/api/v1/namespaces/default").await.expect(200);
    let maps = "/api/v1/namespaces/default/configmaps";
    let address = format!("https://127.0.0.1:6443{maps}?fieldManager=me");
    let answer = world.post(&address, &json!({"metadata": {"name": "a"}})).await;
    let id = answer.header("audit-id").unwrap().to_owned();
    // The log is written by a thread of its own, soon after the answer.
    let written = async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap();
            match text.split_once('\n') {
                Some((line, _)) => break serde_json::from_str::<Value>(line).unwrap(),
                None => tokio::task::yield_now().await,
            }
        }
    };
    let line = tokio::time::timeout(std::time::Duration::from_secs(30), written).await.expect("the line is written");
    assert_eq!((&line["kind"], &line["auditID"], &line["verb"]), (&json!("Event"), &json!(id), &json!("create")));
    assert_eq!(line["requestURI"], format!("{maps}?fieldManager=me"));
    assert_eq!(line["user"]["username"], "admin");
    assert_eq!(line["responseStatus"]["code"], 201);
    let object = json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(line["objectRef"], object);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn options_that_are_refused_are_named_by_their_verb() {
    let world = World::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "a"}});
    let kind = |refused: Value| refused["details"]["kind"].as_str().unwrap().to_owned();
    assert_eq!(kind(world.post(&format!("{maps}?dryRun=No"), &map).await.expect(422)), "CreateOptions");
    assert_eq!(kind(world.put(&format!("{maps}/a?dryRun=No"), &map).await.expect(422)), "UpdateOptions");
    assert_eq!(
        kind(world.patch(&format!("{maps}/a?dryRun=No"), "merge-patch+json", &map).await.expect(422)),
        "PatchOptions"
    );
}

#[tokio::test]
async fn the_parts_of_the_control_plane_tell_how_they_are() {
    const PATH: &str = "/api/v1/componentstatuses";
    let world = World::new().await;
    let _running = world.api.system().components.begin(Component::Scheduler);
    let answer = world.get(PATH).await;
    assert_eq!(answer.header("warning"), Some("299 - \"v1 ComponentStatus is deprecated in v1.19+\""));
    let list = answer.expect(200);
    assert_eq!((&list["kind"], &list["metadata"]), (&json!("ComponentStatusList"), &json!({})));
    let absent = json!({"type": "Healthy", "status": "False", "message": "this cluster runs no controller-manager"});
    let well = json!({"type": "Healthy", "status": "True", "message": "ok"});
    let row = |name: &str, condition: &Value| json!({"metadata": {"name": name}, "conditions": [condition]});
    let expected = json!([row("controller-manager", &absent), row("scheduler", &well), row("etcd-0", &well)]);
    assert_eq!(list["items"], expected);

    let one = world.get(&format!("{PATH}/scheduler")).await.expect(200);
    assert_eq!((&one["kind"], &one["conditions"]), (&json!("ComponentStatus"), &json!([well])));
    let gone = world.get(&format!("{PATH}/none")).await.expect(404);
    assert_eq!(gone["message"], "componentstatus \"none\" not found");
    let chosen = world.get(&format!("{PATH}?fieldSelector=metadata.name%3Detcd-0")).await.expect(200);
    assert_eq!(chosen["items"], json!([row("etcd-0", &well)]));
    let none = world.get(&format!("{PATH}?labelSelector=app%3Dx")).await.expect(200);
    assert_eq!(none["items"], json!([]));
    let table = world.get_as(PATH, "application/json;as=Table;v=v1;g=meta.k8s.io").await.expect(200);
    assert_eq!(table["rows"][1]["cells"], json!(["scheduler", "Healthy", "ok", ""]));
    world.post(PATH, &json!({"metadata": {"name": "x"}})).await.expect(405);
}

#[tokio::test]
async fn a_dry_run_answers_what_would_be_stored() {
    let world = World::new().await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let role =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": []});
    let dry = world.post(&format!("{roles}?dryRun=All"), &role).await.expect(201);
    let stored = world.post(roles, &role).await.expect(201);
    assert_eq!((&dry["rules"], &stored["rules"]), (&Value::Null, &Value::Null));
    let dry = world.put(&format!("{roles}/r?dryRun=All"), &role).await.expect(200);
    assert_eq!(dry["rules"], Value::Null);
}
