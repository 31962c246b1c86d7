//! Objects that users get wrong, with the text that tells them.

use serde_json::{Value, json};

use super::validate_builtin;
use crate::{builtin, conform, defaults};

pub(super) fn prepared((group, version, kind): (&str, &str, &str), object: Value) -> Value {
    let kind = builtin().by_kind(group, version, kind).unwrap();
    let mut object = conform(&kind.definition, object).unwrap().object;
    defaults(kind, &mut object);
    object
}

pub(super) fn check(kind: (&str, &str, &str), object: Value, expect: &[&str]) {
    check_update(kind, None, object, expect);
}

pub(super) fn check_update(kind: (&str, &str, &str), old: Option<Value>, new: Value, expect: &[&str]) {
    let (new, old) = (prepared(kind, new), old.map(|old| prepared(kind, old)));
    let kind = builtin().by_kind(kind.0, kind.1, kind.2).unwrap();
    let errors: Vec<String> = validate_builtin(kind, &new, old.as_ref()).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expect);
}

pub(super) const POD: (&str, &str, &str) = ("", "v1", "Pod");
pub(super) const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "Deployment");
const SERVICE: (&str, &str, &str) = ("", "v1", "Service");

pub(super) fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec})
}

pub(super) fn deployment(labels: Value) -> Value {
    json!({"metadata": {"name": "a", "namespace": "default"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    }})
}

#[test]
fn names_and_labels_are_checked() {
    let config_map = ("", "v1", "ConfigMap");
    check(
        config_map,
        json!({"metadata": {"namespace": "a"}}),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check(config_map, json!({"metadata": {"name": "a"}}), &["metadata.namespace: Required value"]);
    check(
        ("", "v1", "Node"),
        json!({"metadata": {"name": "a", "namespace": "b"}}),
        &["metadata.namespace: Forbidden: not allowed on this type"],
    );
    check(
        SERVICE,
        json!({"metadata": {"name": "a.b", "namespace": "a"}, "spec": {"ports": [{"port": 1}]}}),
        &[r#"metadata.name: Invalid value: "a.b": must not contain dots"#],
    );
    check(
        config_map,
        json!({"metadata": {"name": "a", "namespace": "a", "labels": {"k": "a b"}}}),
        &[
            r#"metadata.labels: Invalid value: "a b": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
        ],
    );
    check(("rbac.authorization.k8s.io", "v1", "ClusterRole"), json!({"metadata": {"name": "system:node"}}), &[]);
}

#[test]
fn finalizers_say_whose_they_are_and_are_not_added_late() {
    let config_map = ("", "v1", "ConfigMap");
    let held = |finalizers: Value| json!({"metadata": {"name": "a", "namespace": "a", "finalizers": finalizers}});
    check(config_map, held(json!(["example.com/hold", "foregroundDeletion"])), &[]);
    check(
        config_map,
        held(json!(["hold"])),
        &[
            r#"metadata.finalizers[0]: Invalid value: "hold": name is neither a standard finalizer name nor is it fully qualified"#,
        ],
    );
    let mut old = held(json!(["a/b"]));
    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    check_update(config_map, Some(old.clone()), new.clone(), &[]);
    new["metadata"]["finalizers"] = json!(["a/b", "e/f", "c/d"]);
    check_update(
        config_map,
        Some(old),
        new,
        &[
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d", "e/f"}"#,
        ],
    );
}

#[test]
fn an_object_keeps_its_name_and_has_one_controller() {
    let config_map = ("", "v1", "ConfigMap");
    let named = |name: &str| json!({"metadata": {"name": name, "namespace": "a"}});
    check_update(
        config_map,
        Some(named("a")),
        named("b"),
        &[r#"metadata.name: Invalid value: "b": field is immutable"#],
    );
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "1", "controller": true});
    let mut owned = named("a");
    owned["metadata"]["ownerReferences"] = json!([owner("a")]);
    check(config_map, owned.clone(), &[]);
    owned["metadata"]["ownerReferences"] = json!([owner("a"), owner("b")]);
    let errors = {
        let kind = builtin().by_kind("", "v1", "ConfigMap").unwrap();
        validate_builtin(kind, &prepared(config_map, owned.clone()), None)
    };
    let detail = "Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b";
    assert_eq!((errors[0].path.as_str(), errors[0].detail.as_str()), ("metadata.ownerReferences", detail));
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "a"}]);
    check(config_map, owned, &[r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#]);
}

#[test]
fn pods_need_containers_that_make_sense() {
    check(POD, pod(json!({"containers": [{"name": "a", "image": "a"}]})), &[]);
    check(POD, pod(json!({})), &["spec.containers: Required value"]);
    check(
        POD,
        pod(json!({"containers": [
            {"image": "a", "ports": [{"containerPort": 70000, "protocol": "X"}]},
            {"name": "b", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
            {"name": "b", "image": "b", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        ]})),
        &[
            "spec.containers[0].name: Required value",
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            r#"spec.containers[0].ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP""#,
            "spec.containers[1].image: Required value",
            r#"spec.containers[1].volumeMounts[0].name: Not found: "v""#,
            r#"spec.containers[2].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#,
            r#"spec.containers[2].name: Duplicate value: "b""#,
        ],
    );
}

#[test]
fn deployments_select_their_pods_for_good() {
    check(DEPLOYMENT, deployment(json!({"app": "a"})), &[]);
    check(
        DEPLOYMENT,
        deployment(json!({"app": "b"})),
        &[r#"spec.template.metadata.labels: Invalid value: {"app":"b"}: `selector` does not match template `labels`"#],
    );
    let mut other = deployment(json!({"app": "a"}));
    other["spec"]["selector"]["matchLabels"] = json!({"app": "b"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "b"});
    check_update(
        DEPLOYMENT,
        Some(deployment(json!({"app": "a"}))),
        other,
        &[r#"spec.selector: Invalid value: {"matchLabels":{"app":"b"}}: field is immutable"#],
    );
    let mut negative = deployment(json!({"app": "a"}));
    negative["spec"]["replicas"] = json!(-1);
    check(DEPLOYMENT, negative, &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]);
}

#[test]
fn services_need_ports_and_keep_their_address() {
    let service = |spec: Value| json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec});
    check(SERVICE, service(json!({})), &["spec.ports: Required value"]);
    check(SERVICE, service(json!({"clusterIP": "None"})), &[]);
    check(
        SERVICE,
        service(json!({"ports": [{"port": 80}, {"port": 81, "name": "b"}]})),
        &["spec.ports[0].name: Required value"],
    );
    check(
        SERVICE,
        service(json!({"ports": [{"port": 0, "name": "a"}, {"port": 81, "name": "a"}]})),
        &[
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            r#"spec.ports[1].name: Duplicate value: "a""#,
        ],
    );
    let at = |ip: &str| service(json!({"clusterIP": ip, "ports": [{"port": 80}]}));
    check_update(
        SERVICE,
        Some(at("10.0.0.1")),
        at("10.0.0.2"),
        &[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set"#],
    );
}

#[test]
fn data_has_names_of_files() {
    let config_map = |data: Value| json!({"metadata": {"name": "a", "namespace": "a"}, "data": data});
    let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    check(("", "v1", "ConfigMap"), config_map(json!({"a.b-c_D": ""})), &[]);
    check(
        ("", "v1", "ConfigMap"),
        config_map(json!({"a/b": ""})),
        &[&format!(r#"data[a/b]: Invalid value: "a/b": {rule}"#)],
    );
    check(("", "v1", "ConfigMap"), config_map(json!({"": ""})), &[&format!(r#"data[]: Invalid value: "": {rule}"#)]);
    check(
        ("", "v1", "ConfigMap"),
        config_map(json!({"a": "x".repeat((1 << 20) + 1)})),
        &["[]: Too long: may not be more than 1048576 bytes"],
    );
}

#[test]
fn data_can_be_frozen() {
    let config_map =
        |data: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "data": {"k": data}, "immutable": true});
    check_update(
        ("", "v1", "ConfigMap"),
        Some(config_map("1")),
        config_map("2"),
        &["data: Forbidden: field is immutable when `immutable` is set"],
    );
    let secret = |r#type: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "type": r#type});
    check(
        ("", "v1", "Secret"),
        secret("kubernetes.io/tls"),
        &["data[tls.crt]: Required value", "data[tls.key]: Required value"],
    );
    check_update(
        ("", "v1", "Secret"),
        Some(secret("Opaque")),
        secret("x"),
        &[r#"type: Invalid value: "x": field is immutable"#],
    );
}

pub(super) const JOB: (&str, &str, &str) = ("batch", "v1", "Job");

/// The Job with what the server gives it.
pub(super) fn with_selector(mut job: Value, uid: &str) -> Value {
    job["metadata"]["uid"] = uid.into();
    job["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    job["spec"]["template"]["metadata"]["labels"] = json!({
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": job["metadata"]["name"], "batch.kubernetes.io/job-name": job["metadata"]["name"],
    });
    job
}

#[test]
fn jobs_end() {
    let job = |policy: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"template": {"spec": {"restartPolicy": policy, "containers": [{"name": "a", "image": "a"}]}}}});
    let made = |policy: &str| with_selector(job(policy), "1");
    check(JOB, made("Never"), &[]);
    check(
        JOB,
        made("Always"),
        &[r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#],
    );
    check(
        JOB,
        job("Never"),
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
        ],
    );
    let cron = |schedule: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": job("Never")["spec"]}}});
    for schedule in ["*/5 * * * *", "@daily", "0 0 1-15 jan mon-fri", "@every 1h"] {
        check(("batch", "v1", "CronJob"), cron(schedule), &[]);
    }
    check(
        ("batch", "v1", "CronJob"),
        cron("* * *"),
        &[r#"spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]"#],
    );
    check(
        ("batch", "v1", "CronJob"),
        cron("60 * * * *"),
        &[r#"spec.schedule: Invalid value: "60 * * * *": end of range (60) above maximum (59): 60"#],
    );
    check(
        ("batch", "v1", "CronJob"),
        cron("@every soon"),
        &[
            r#"spec.schedule: Invalid value: "@every soon": failed to parse duration @every soon: time: invalid duration "soon""#,
        ],
    );
}

#[test]
fn roles_and_claims_need_their_parts() {
    check(
        ("rbac.authorization.k8s.io", "v1", "Role"),
        json!({"metadata": {"name": "a", "namespace": "a"}, "rules": [{"resources": ["pods"]}]}),
        &[
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ],
    );
    let binding =
        |name: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "roleRef": {"kind": "Role", "name": name}});
    check_update(
        ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
        Some(binding("a")),
        binding("b"),
        &[
            r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}: cannot change roleRef"#,
        ],
    );
    check(
        ("", "v1", "PersistentVolumeClaim"),
        json!({"metadata": {"name": "a", "namespace": "a"}}),
        &[
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    );
}

#[test]
fn policies_and_limits_make_sense() {
    let policy = ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
    check(
        policy,
        json!({"metadata": {"name": "a"}, "spec": {"validations": [{"expression": " "}]}}),
        &[
            "spec.matchConstraints: Required value",
            "spec.validations[0].expression: Required value: expression is not specified",
        ],
    );
    let hook =
        json!({"name": "a.example.com", "clientConfig": {}, "admissionReviewVersions": ["v1"], "timeoutSeconds": 31});
    check(
        ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
        json!({"metadata": {"name": "a"}, "webhooks": [hook]}),
        &[
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ],
    );
    let rules = json!([{"operations": ["*", "CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*", "pods/x"]}]);
    let config = json!({"url": "http://u@a.example?x"});
    let hook = json!({"name": "a.b", "clientConfig": config, "admissionReviewVersions": ["v1", "v1"], "sideEffects": "None", "rules": rules});
    check(
        ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"),
        json!({"metadata": {"name": "a"}, "webhooks": [hook]}),
        &[
            r#"webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots"#,
            r#"webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations"#,
            r#"webhooks[0].rules[0].resources[1]: Invalid value: "pods/x": if 'pods/*' is present, must not specify pods/x"#,
            r#"webhooks[0].clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
            r#"webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL"#,
            r#"webhooks[0].clientConfig.url: Invalid value: "x": query parameters are not permitted in the URL"#,
            r#"webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version"#,
        ],
    );
    check(
        ("", "v1", "ResourceQuota"),
        json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"hard": {"pods": "-1"}}}),
        &[r#"spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0"#],
    );
    let limit = json!({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}});
    check(
        ("", "v1", "LimitRange"),
        json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"limits": [limit]}}),
        &[
            r#"spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1"#,
            r#"spec.limits[0].defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater than max value 1"#,
            r#"spec.limits[0].default[cpu]: Invalid value: "2": default value 2 is greater than max value 1"#,
        ],
    );
}

#[test]
fn network_policies_name_their_peers() {
    let policy = |ingress: Value| {
        let spec = json!({"podSelector": {}, "ingress": [ingress]});
        json!({"metadata": {"name": "a", "namespace": "a"}, "spec": spec})
    };
    let kind = ("networking.k8s.io", "v1", "NetworkPolicy");
    check(kind, policy(json!({"from": [{"podSelector": {}}], "ports": [{"port": 80, "endPort": 90}]})), &[]);
    check(kind, policy(json!({"from": [{}]})), &["spec.ingress[0].from[0]: Required value: must specify a peer"]);
    check(
        kind,
        policy(json!({"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]})),
        &["spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"],
    );
    check(
        kind,
        policy(json!({"ports": [{"port": "http", "endPort": 90}]})),
        &["spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric"],
    );
}
