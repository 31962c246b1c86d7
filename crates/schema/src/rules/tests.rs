//! Objects that users get wrong, with the text that tells them.

use serde_json::{Value, json};

use super::validate_builtin;
use crate::{builtin, conform, defaults};

fn prepared((group, version, kind): (&str, &str, &str), object: Value) -> Value {
    let kind = builtin().by_kind(group, version, kind).unwrap();
    let mut object = conform(&kind.definition, object).unwrap().object;
    defaults(kind, &mut object);
    object
}

fn check(kind: (&str, &str, &str), object: Value, expect: &[&str]) {
    check_update(kind, None, object, expect);
}

fn check_update(kind: (&str, &str, &str), old: Option<Value>, new: Value, expect: &[&str]) {
    let (new, old) = (prepared(kind, new), old.map(|old| prepared(kind, old)));
    let kind = builtin().by_kind(kind.0, kind.1, kind.2).unwrap();
    let errors: Vec<String> = validate_builtin(kind, &new, old.as_ref()).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expect);
}

const POD: (&str, &str, &str) = ("", "v1", "Pod");
const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "Deployment");
const SERVICE: (&str, &str, &str) = ("", "v1", "Service");

fn pod(spec: Value) -> Value {
    json!({"metadata": {"name": "a", "namespace": "default"}, "spec": spec})
}

fn deployment(labels: Value) -> Value {
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
fn a_running_pod_may_change_its_image_only() {
    let with = |image: &str, node: &str| {
        pod(json!({"nodeName": node, "containers": [{"name": "a", "image": image, "imagePullPolicy": "Never"}]}))
    };
    check_update(POD, Some(with("a:1", "n")), with("a:2", "n"), &[]);
    let errors = {
        let kind = builtin().by_kind("", "v1", "Pod").unwrap();
        validate_builtin(kind, &prepared(POD, with("a:1", "m")), Some(&prepared(POD, with("a:1", "n"))))
    };
    assert!(errors[0].to_string().starts_with("spec: Forbidden: pod updates may not change fields other than"));
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
    let at = |ip: &str| service(json!({"clusterIP": ip, "ports": [{"port": 80}]}));
    check_update(
        SERVICE,
        Some(at("10.0.0.1")),
        at("10.0.0.2"),
        &[r#"spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set"#],
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

#[test]
fn jobs_end() {
    let job = |policy: &str| json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"template": {"spec": {"restartPolicy": policy, "containers": [{"name": "a", "image": "a"}]}}}});
    check(("batch", "v1", "Job"), job("Never"), &[]);
    check(
        ("batch", "v1", "Job"),
        job("Always"),
        &[r#"spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#],
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
            r#"roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"b"}: cannot change roleRef"#,
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
