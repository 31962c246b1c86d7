//! Admission webhooks, with a webhook over HTTPS that the server really calls.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod hook_server;
mod world;

use hook_server::{HookServer, patched};
use serde_json::{Value, json};
use world::World;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn rule(operations: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({"operations": operations, "apiGroups": [group], "apiVersions": ["v1"], "resources": resources})
}

fn hook(server: &HookServer, path: &str, rules: Value) -> Value {
    json!({
        "name": format!("{}.hooks.example", path.trim_start_matches('/')),
        "clientConfig": server.client_config(path),
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}

async fn register(world: &World, path: &str, name: &str, hooks: &[Value]) {
    world.post(path, &json!({"metadata": {"name": name}, "webhooks": hooks})).await.expect(201);
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

/// Denies what says so, and warns of everything.
async fn judge() -> HookServer {
    HookServer::admission(|_, request| {
        let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
        let allowed = object["data"]["verdict"] != "no" || request["operation"] == "DELETE";
        json!({"allowed": allowed && object["data"]["keep"] != "yes", "warnings": ["seen"],
            "status": {"code": 403, "reason": "Forbidden", "message": "not like this"}})
    })
    .await
}

#[tokio::test]
async fn a_webhook_refuses_what_it_does_not_like() {
    let (world, server) = (World::new().await, judge().await);
    let rules = json!([rule(&["CREATE", "UPDATE", "DELETE"], "", &["configmaps"])]);
    register(&world, VALIDATING, "judge", &[hook(&server, "/judge", rules)]).await;
    let created = world.post(CONFIG_MAPS, &config_map("a", json!({"verdict": "yes"}))).await;
    assert_eq!(created.header("warning"), Some("299 - \"seen\""));
    created.expect(201);
    let refused = world.post(CONFIG_MAPS, &config_map("b", json!({"verdict": "no"}))).await;
    assert_eq!(refused.header("warning"), Some("299 - \"seen\""));
    let status = refused.expect(403);
    assert_eq!(status["message"], "admission webhook \"judge.hooks.example\" denied the request: not like this");
    assert_eq!(status["reason"], "Forbidden");
    let change = json!({"data": {"verdict": "no"}});
    world.patch(&format!("{CONFIG_MAPS}/a"), "merge-patch+json", &change).await.expect(403);
    world.patch(&format!("{CONFIG_MAPS}/a"), "merge-patch+json", &json!({"data": {"keep": "yes"}})).await.expect(403);
    world.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.expect(200);
    assert_eq!(server.connections(), 1, "connections are used again");
}

#[tokio::test]
async fn a_webhook_is_told_all_about_the_request() {
    let (world, server) = (World::new().await, judge().await);
    let rules = json!([rule(&["*"], "", &["configmaps"])]);
    register(&world, VALIDATING, "judge", &[hook(&server, "/judge", rules)]).await;
    world
        .post(&format!("{CONFIG_MAPS}?fieldManager=me"), &json!({"metadata": {"generateName": "a-"}}))
        .await
        .expect(201);
    let asked = server.asked();
    let request = &asked[0]["request"];
    assert_eq!(asked[0]["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(request["requestResource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&request["operation"], &request["namespace"]), (&json!("CREATE"), &json!("default")));
    assert_eq!(request.get("name"), None, "the name was made up by the server");
    assert_eq!(request["userInfo"]["username"], "admin");
    assert_eq!(request["options"]["kind"], "CreateOptions");
    assert_eq!(request["options"]["fieldManager"], "me");
    assert_eq!((&request["dryRun"], &request["oldObject"]), (&json!(false), &Value::Null));
    let name = request["object"]["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("a-"));
    world
        .delete(CONFIG_MAPS, &json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}))
        .await
        .expect(200);
    let asked = server.asked();
    let request = &asked[0]["request"];
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!((&request["name"], &request["oldObject"]["metadata"]["name"]), (&json!(name), &json!(name)));
    assert_eq!(request["options"]["propagationPolicy"], "Background");
}

#[tokio::test]
async fn webhooks_change_objects_in_the_order_of_names_and_see_changes_of_others() {
    let world = World::new().await;
    let server = HookServer::admission(|path, request| {
        let data = request["object"]["data"].as_object().cloned().unwrap_or_default();
        let key = path.trim_start_matches('/');
        match data.contains_key(key) {
            true => json!({"allowed": true}),
            false => patched(&json!([{"op": "add", "path": format!("/data/{key}"), "value": data.len().to_string()}])),
        }
    })
    .await;
    let rules = || json!([rule(&["CREATE"], "", &["configmaps"])]);
    let mut first = hook(&server, "/first", rules());
    first["reinvocationPolicy"] = "IfNeeded".into();
    register(&world, MUTATING, "b", &[hook(&server, "/second", rules())]).await;
    register(&world, MUTATING, "a", &[first]).await;
    let created = world.post(CONFIG_MAPS, &config_map("a", json!({"own": "x"}))).await.expect(201);
    assert_eq!(created["data"], json!({"own": "x", "first": "1", "second": "2"}));
    let paths: Vec<Value> = server.asked().iter().map(|asked| asked["request"]["object"]["data"].clone()).collect();
    assert_eq!(paths.len(), 3, "the first one sees what the second one did: {paths:?}");
    assert_eq!(paths[2], json!({"own": "x", "first": "1", "second": "2"}));
}

#[tokio::test]
async fn failures_count_as_the_policy_says() {
    let world = World::new().await;
    let server = HookServer::admission(|path, request| match path {
        "/stranger" => json!({"uid": "other", "allowed": true}),
        "/patcher" => patched(&json!([{"op": "remove", "path": "/data"}])),
        _ => json!({"allowed": request["dryRun"] != true}),
    })
    .await;
    let expectations = [
        ("/broken", "an error on the server"),
        ("/slow", "context deadline exceeded"),
        ("/stranger", "received invalid webhook response: expected response.uid="),
        ("/patcher", "validating webhook may not return response.patch"),
    ];
    for (index, (path, expected)) in expectations.into_iter().enumerate() {
        let name = format!("n{index}");
        let mut failing = hook(&server, path, json!([rule(&["CREATE"], "", &["configmaps"])]));
        failing["timeoutSeconds"] = 1.into();
        register(&world, VALIDATING, &name, &[failing.clone()]).await;
        let refused = world.post(CONFIG_MAPS, &config_map(&name, json!({}))).await.expect(500);
        let message = refused["message"].as_str().unwrap();
        let own = format!("Internal error occurred: failed calling webhook \"{}.hooks.example\": ", &path[1..]);
        assert!(message.starts_with(&own) && message.contains(expected), "{message}");
        world.delete(&format!("{VALIDATING}/{name}"), &Value::Null).await.expect(200);
        failing["failurePolicy"] = "Ignore".into();
        register(&world, VALIDATING, &name, &[failing]).await;
        world.post(CONFIG_MAPS, &config_map(&name, json!({}))).await.expect(201);
        world.delete(&format!("{VALIDATING}/{name}"), &Value::Null).await.expect(200);
    }
}

#[tokio::test]
async fn a_certificate_of_a_stranger_is_refused() {
    let (world, server, other) = (World::new().await, judge().await, judge().await);
    let mut wrong = hook(&server, "/judge", json!([rule(&["CREATE"], "", &["configmaps"])]));
    wrong["clientConfig"]["caBundle"] = other.ca_bundle().into();
    register(&world, VALIDATING, "judge", &[wrong]).await;
    let refused = world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(500);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("x509: certificate signed by unknown authority"), "{message}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn selectors_conditions_and_dry_run_narrow_what_a_webhook_sees() {
    let (world, server) = (World::new().await, judge().await);
    world
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "red", "labels": {"watched": "yes"}}}))
        .await
        .expect(201);
    let mut narrow = hook(&server, "/judge", json!([rule(&["CREATE"], "", &["configmaps"])]));
    narrow["namespaceSelector"] = json!({"matchLabels": {"watched": "yes"}});
    narrow["objectSelector"] = json!({"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]});
    narrow["matchConditions"] = json!([
        {"name": "named", "expression": "object.metadata.name != 'exempt' && request.userInfo.username == 'admin'"},
        {"name": "quiet", "expression": "!has(object.data) || object.data.verdict != 'quiet'"},
    ]);
    register(&world, VALIDATING, "judge", &[narrow]).await;
    let red = "/api/v1/namespaces/red/configmaps";
    let no = json!({"verdict": "no"});
    world.post(CONFIG_MAPS, &config_map("a", no.clone())).await.expect(201);
    world.post(red, &config_map("exempt", no.clone())).await.expect(201);
    let skipped = json!({"metadata": {"name": "skipped", "labels": {"skip": ""}}, "data": no});
    world.post(red, &skipped).await.expect(201);
    world.post(red, &config_map("quiet", json!({"verdict": "quiet"}))).await.expect(201);
    assert!(server.asked().is_empty());
    world.post(red, &config_map("a", no)).await.expect(403);
    world.post(&format!("{red}?dryRun=All"), &config_map("dry", json!({"verdict": "yes"}))).await.expect(201);
    let dry = server.asked().pop().unwrap();
    assert_eq!(dry["request"]["dryRun"], true);
    assert_eq!(dry["request"]["options"]["dryRun"], json!(["All"]));
    // An expression that fails is a refusal, as the failure policy is Fail.
    let failed = world.post(red, &config_map("b", json!({"other": "x"}))).await.expect(403);
    assert!(failed["message"].as_str().unwrap().contains("no such key: verdict"), "{failed}");
}

#[tokio::test]
async fn the_configurations_themselves_are_exempt() {
    let (world, server) = (World::new().await, judge().await);
    let everything = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let mut all = hook(&server, "/broken", everything);
    all["name"] = "all.hooks.example".into();
    register(&world, VALIDATING, "all", &[all]).await;
    world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(500);
    world.delete(&format!("{VALIDATING}/all"), &Value::Null).await.expect(200);
    world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(201);
}

#[tokio::test]
async fn other_versions_and_subresources_are_matched_and_shown_as_the_rule_wants_them() {
    let (world, server) = (World::new().await, judge().await);
    let mut autoscalers = rule(&["CREATE"], "autoscaling", &["horizontalpodautoscalers"]);
    autoscalers["apiVersions"] = json!(["v2"]);
    let scales = rule(&["UPDATE"], "apps", &["deployments/scale"]);
    let tokens = rule(&["CREATE"], "", &["serviceaccounts/token"]);
    register(&world, VALIDATING, "judge", &[hook(&server, "/judge", json!([autoscalers, scales, tokens]))]).await;
    let autoscaler = json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
        "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
    world.post("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", &autoscaler).await.expect(201);
    let asked = server.asked();
    assert_eq!(asked[0]["request"]["kind"]["version"], "v2");
    assert_eq!(asked[0]["request"]["requestKind"]["version"], "v1");
    assert_eq!(asked[0]["request"]["object"]["apiVersion"], "autoscaling/v2");
    assert_eq!(asked[0]["request"]["object"]["spec"]["metrics"][0]["resource"]["name"], "cpu");
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment =
        json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    world.post(deployments, &deployment).await.expect(201);
    assert!(server.asked().is_empty());
    let scale = json!({"spec": {"replicas": 4}});
    world.patch(&format!("{deployments}/d/scale"), "merge-patch+json", &scale).await.expect(200);
    let asked = server.asked();
    let request = &asked[0]["request"];
    assert_eq!(request["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(request["resource"]["resource"], "deployments");
    assert_eq!((&request["subResource"], &request["object"]["spec"]["replicas"]), (&json!("scale"), &json!(4)));
    assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
}

#[tokio::test]
async fn a_service_is_a_way_to_a_webhook() {
    let world = World::new().await;
    let server = HookServer::start("hook.default.svc", |_, question| {
        hook_server::admission(question, json!({"allowed": false, "status": {"message": "by service"}}))
    })
    .await;
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "targetPort": 1}]}});
    world.post("/api/v1/namespaces/default/services", &service).await.expect(201);
    let port = server.address.port();
    let slice = json!({"metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}, "addressType": "IPv4",
        "ports": [{"name": "", "port": port}], "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": true}}]});
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    world.post(slices, &slice).await.expect(201);
    let mut hook = hook(&server, "/judge", json!([rule(&["CREATE"], "", &["configmaps"])]));
    hook["clientConfig"] =
        json!({"service": {"namespace": "default", "name": "hook", "path": "/judge"}, "caBundle": server.ca_bundle()});
    register(&world, VALIDATING, "judge", &[hook]).await;
    let refused = world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(400);
    assert_eq!(refused["message"], "admission webhook \"judge.hooks.example\" denied the request: by service");
}
