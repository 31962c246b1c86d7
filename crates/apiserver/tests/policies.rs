//! Admission policies: those that refuse and those that change.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

mod world;

use serde_json::{Value, json};
use world::{Answer, World};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn constraints(group: &str, resource: &str) -> Value {
    json!({"resourceRules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}]})
}

fn with(mut spec: Value, more: Value) -> Value {
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// Puts a policy that refuses into force.
async fn refuse(world: &World, spec: Value, binding: Value) {
    let policy = json!({"metadata": {"name": "policy.example"}, "spec": spec});
    world.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy).await.expect(201);
    let spec = with(json!({"policyName": "policy.example", "validationActions": ["Deny"]}), binding);
    let binding = json!({"metadata": {"name": "binding.example"}, "spec": spec});
    world.post(&format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await.expect(201);
}

/// Puts a policy that changes into force.
async fn mutate(world: &World, name: &str, spec: Value) {
    let spec = with(json!({"reinvocationPolicy": "Never"}), spec);
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    world.post(&format!("{GROUP}/mutatingadmissionpolicies"), &policy).await.expect(201);
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    world.post(&format!("{GROUP}/mutatingadmissionpolicybindings"), &binding).await.expect(201);
}

fn deployment(name: &str, replicas: i64) -> Value {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}})
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"metadata": {"name": name}, "data": data})
}

#[track_caller]
fn check_message(answer: Answer, status: u16, expected: &str) {
    let value = answer.expect(status);
    assert_eq!(value["message"], expected);
}

#[tokio::test]
async fn a_policy_refuses_with_its_variables_and_messages() {
    let world = World::new().await;
    let spec = json!({
        "matchConstraints": constraints("apps", "deployments"),
        "variables": [
            {"name": "replicas", "expression": "object.spec.replicas"},
            {"name": "odd", "expression": "variables.replicas % 2 == 1"},
            {"name": "broken", "expression": "object.spec.nobody.here"},
        ],
        "validations": [
            {"expression": "variables.replicas > 1", "messageExpression": "'not ' + string(variables.replicas)"},
            {"expression": "variables.odd", "message": "even", "reason": "Forbidden"},
            {"expression": "object.metadata.name != 'x' || variables.broken == 1"},
        ],
    });
    refuse(&world, spec, json!({})).await;
    let denied = "ValidatingAdmissionPolicy 'policy.example' with binding 'binding.example' denied request: ";
    world.post(DEPLOYMENTS, &deployment("three", 3)).await.expect(201);
    let one = world.post(DEPLOYMENTS, &deployment("one", 1)).await.expect(422);
    assert_eq!(one["message"], format!("deployments.apps \"one\" is forbidden: {denied}not 1"));
    assert_eq!(
        (&one["reason"], &one["details"]["causes"][0]["message"]),
        (&json!("Invalid"), &json!(format!("{denied}not 1")))
    );
    check_message(
        world.post(DEPLOYMENTS, &deployment("two", 2)).await,
        403,
        &format!("deployments.apps \"two\" is forbidden: {denied}even"),
    );
    let failed = world.post(DEPLOYMENTS, &deployment("x", 3)).await.expect(422);
    assert!(failed["message"].as_str().unwrap().contains("resulted in error: no such key: nobody"), "{failed}");
    world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(201);
    let patch = json!({"spec": {"replicas": 1}});
    world.patch(&format!("{DEPLOYMENTS}/three"), "merge-patch+json", &patch).await.expect(422);
}

#[tokio::test]
async fn parameters_come_from_where_the_binding_says() {
    let world = World::new().await;
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": constraints("apps", "deployments"),
        "validations": [{"expression": "object.spec.replicas <= int(params.data.max)", "messageExpression": "'at most ' + params.data.max"}],
    });
    let reference = json!({"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"});
    refuse(&world, spec, json!({"paramRef": reference})).await;
    let missing = world.post(DEPLOYMENTS, &deployment("a", 1)).await.expect(422);
    let expected =
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(missing["message"].as_str().unwrap().ends_with(expected), "{missing}");
    world.post(CONFIG_MAPS, &config_map("limits", json!({"max": "2"}))).await.expect(201);
    world.post(DEPLOYMENTS, &deployment("a", 2)).await.expect(201);
    let refused = world.post(DEPLOYMENTS, &deployment("b", 3)).await.expect(422);
    assert!(refused["message"].as_str().unwrap().ends_with(": at most 2"), "{refused}");
}

#[tokio::test]
async fn actions_and_conditions_and_namespaces_decide_what_follows() {
    let world = World::new().await;
    let spec = json!({
        "matchConstraints": constraints("", "configmaps"),
        "matchConditions": [{"name": "others", "expression": "object.metadata.name != 'exempt'"}],
        "validations": [{"expression": "namespaceObject.metadata.name == 'red' && request.namespace == 'red'", "message": "only red"}],
    });
    refuse(&world, spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    let warned = world.post(CONFIG_MAPS, &config_map("a", json!({}))).await;
    let expected = "299 - \"Validation failed for ValidatingAdmissionPolicy 'policy.example' with binding 'binding.example': only red\"";
    assert_eq!(warned.header("warning"), Some(expected));
    warned.expect(201);
    assert_eq!(world.post(CONFIG_MAPS, &config_map("exempt", json!({}))).await.header("warning"), None);
    world.post("/api/v1/namespaces", &json!({"metadata": {"name": "red"}})).await.expect(201);
    let red = world.post("/api/v1/namespaces/red/configmaps", &config_map("a", json!({}))).await;
    assert_eq!(red.header("warning"), None);
    red.expect(201);
}

#[tokio::test]
async fn expressions_ask_what_somebody_may() {
    let world = World::new().await;
    let spec = json!({
        "matchConstraints": constraints("", "configmaps"),
        // Two questions are what an expression may cost.
        "validations": [{
            "expression": "authorizer.group('').resource('secrets').namespace('default').check('delete').allowed() && \
                !authorizer.serviceAccount('default', 'nobody').path('/metrics').check('get').allowed()",
            "message": "may not",
        }, {
            "expression": "authorizer.requestResource.check('create').allowed()",
            "message": "may not",
        }],
    });
    refuse(&world, spec, json!({})).await;
    world.post(CONFIG_MAPS, &config_map("a", json!({}))).await.expect(201);
    let rules = json!([{"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"]}]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    world.post(&format!("{roles}/roles"), &json!({"metadata": {"name": "writer"}, "rules": rules})).await.expect(201);
    let binding = json!({"metadata": {"name": "writer"}, "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "writer", "apiGroup": "rbac.authorization.k8s.io"}});
    world.post(&format!("{roles}/rolebindings"), &binding).await.expect(201);
    world.user("ann").post(CONFIG_MAPS, &config_map("b", json!({}))).await.expect(422);
}

#[tokio::test]
async fn policies_that_cannot_work_are_refused_when_they_are_written() {
    let world = World::new().await;
    let policy = |validation: Value| {
        let spec = json!({"matchConstraints": constraints("", "pods"), "validations": [validation]});
        json!({"metadata": {"name": "p"}, "spec": spec})
    };
    let path = format!("{GROUP}/validatingadmissionpolicies");
    for (expression, expected) in [
        ("object.spec ==", "spec.validations[0].expression: Invalid value: \"object.spec ==\": compilation failed"),
        ("params.x == 1", "undeclared reference to 'params'"),
        ("variables.x == 1", "undeclared reference to 'variables'"),
        ("Object{} == object", "<input>:1:7: undeclared reference to 'Object' (in container '')"),
    ] {
        let refused = world.post(&path, &policy(json!({"expression": expression}))).await.expect(422);
        assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
    }
    let created = world.post(&path, &policy(json!({"expression": "object.spec.size == 1"}))).await.expect(201);
    assert_eq!(created["spec"]["failurePolicy"], "Fail");
    let mut events = world.watch(&format!("{path}?watch=true")).await;
    loop {
        let event = events.next().await.unwrap();
        if event["object"]["status"]["typeChecking"].is_object() {
            assert_eq!(event["object"]["status"]["observedGeneration"], event["object"]["metadata"]["generation"]);
            let warning = &event["object"]["status"]["typeChecking"]["expressionWarnings"][0];
            assert_eq!(warning["fieldRef"], "spec.validations[0].expression");
            let text = "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'size'";
            assert!(warning["warning"].as_str().unwrap().starts_with(text), "{warning}");
            break;
        }
    }
}

#[tokio::test]
async fn a_policy_changes_what_is_written() {
    let world = World::new().await;
    let apply = "Object{metadata: Object.metadata{annotations: {'my-key': 'v-' + object.metadata.name}}, \
        spec: Object.spec{replicas: variables.next, template: Object.spec.template{spec: Object.spec.template.spec{\
        containers: [Object.spec.template.spec.containers.item{name: 'side', image: 's'}]}}}}";
    let spec = json!({
        "matchConstraints": constraints("apps", "deployments"),
        "variables": [{"name": "next", "expression": "object.spec.replicas + 1"}],
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}}],
    });
    mutate(&world, "a.example", spec).await;
    let patch = "[JSONPatch{op: 'test', path: '/spec/replicas', value: 2}, \
        JSONPatch{op: 'add', path: '/metadata/labels', value: {'seen/' + 'x': 'yes'}}, \
        JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), value: 'c'}]";
    let spec = json!({
        "matchConstraints": constraints("apps", "deployments"),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    });
    mutate(&world, "b.example", spec).await;
    let created = world.post(DEPLOYMENTS, &deployment("d", 1)).await.expect(201);
    assert_eq!(created["metadata"]["annotations"], json!({"my-key": "v-d", "a/b": "c"}));
    assert_eq!(created["metadata"]["labels"], json!({"seen/x": "yes"}));
    assert_eq!(created["spec"]["replicas"], 2);
    let containers = created["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let names: Vec<&Value> = containers.iter().map(|container| &container["name"]).collect();
    assert_eq!(names, ["c", "side"], "lists are merged by their keys");
    assert_eq!(containers[1]["terminationMessagePath"], "/dev/termination-log", "what is added gets its defaults");
    let refused = world.post(DEPLOYMENTS, &deployment("e", 5)).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with("policy 'b.example' with binding 'b.example' denied request: JSON Patch: "),
        "{message}"
    );
}

#[tokio::test]
async fn what_has_one_owner_is_not_changed_in_part() {
    let world = World::new().await;
    let apply = "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'x': 'y'}}}}";
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": constraints("apps", "deployments"),
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": apply}}],
    });
    mutate(&world, "a.example", spec).await;
    let refused = world.post(DEPLOYMENTS, &deployment("d", 1)).await.expect(403);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("may not mutate atomic arrays, maps or structs: .spec.selector"), "{message}");
}
