//! What is wrong with workloads, and what is said of it.

use serde_json::{Value, json};

use super::tests::{DEPLOYMENT, POD, check, check_update, deployment, pod, prepared};
use super::validate_builtin_status;
use crate::builtin;

const REPLICA_SET: (&str, &str, &str) = ("apps", "v1", "ReplicaSet");
const STATEFUL_SET: (&str, &str, &str) = ("apps", "v1", "StatefulSet");
const DAEMON_SET: (&str, &str, &str) = ("apps", "v1", "DaemonSet");

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut workload = deployment(json!({"app": "a"}));
    change(&mut workload["spec"]);
    workload
}

#[test]
fn a_selector_that_cannot_be_read_is_all_that_is_said() {
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Always"}]});
    let broken = with(|spec| {
        spec["selector"] = selector.clone();
        spec["template"] = json!({});
    });
    let operator =
        r#"spec.selector.matchExpressions[0].operator: Invalid value: "Always": not a valid selector operator"#;
    let shown = r#"spec.selector: Invalid value: {"matchExpressions":[{"key":"app","operator":"Always"}]}"#;
    check(REPLICA_SET, broken.clone(), &[operator, &format!("{shown}: invalid label selector")]);
    check(STATEFUL_SET, broken.clone(), &[operator, shown]);
    check(DAEMON_SET, broken, &[operator, "spec.template.spec.containers: Required value"]);
}

#[test]
fn labels_of_templates_are_named_by_a_short_path() {
    let labelled = with(|spec| spec["template"]["metadata"]["labels"]["b"] = "!".into());
    let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    check(DEPLOYMENT, labelled, &[&format!(r#"spec.template.labels: Invalid value: "!": {rule}"#)]);
}

#[test]
fn daemons_are_replaced_before_or_after() {
    let bounds = |bounds: Value| with(|spec| spec["updateStrategy"] = json!({ "rollingUpdate": bounds }));
    check(DAEMON_SET, bounds(json!({"maxUnavailable": 0, "maxSurge": 1})), &[]);
    check(
        DAEMON_SET,
        bounds(json!({"maxUnavailable": 0})),
        &["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    );
    check(
        DAEMON_SET,
        bounds(json!({"maxUnavailable": 1, "maxSurge": "5%"})),
        &[
            r#"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "5%": may not be set when maxUnavailable is non-zero"#,
        ],
    );
}

#[test]
fn tolerations_make_sense() {
    let tolerate = |toleration: Value, expect: &[&str]| {
        let spec = json!({"containers": [{"name": "a", "image": "a"}], "tolerations": [toleration]});
        check(POD, pod(spec), expect);
    };
    tolerate(json!({"key": "k", "operator": "Exists"}), &[]);
    tolerate(
        json!({"key": "k", "operator": "80"}),
        &[r#"spec.tolerations[0].operator: Unsupported value: "80": supported values: "Equal", "Exists""#],
    );
    tolerate(
        json!({"key": "k", "operator": "Exists", "value": "v", "effect": "E"}),
        &[
            r#"spec.tolerations[0].operator: Invalid value: "v": value must be empty when `operator` is 'Exists'"#,
            r#"spec.tolerations[0].effect: Unsupported value: "E": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#,
        ],
    );
    tolerate(
        json!({"operator": "Equal"}),
        &[
            r#"spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys""#,
        ],
    );
}

#[test]
fn ports_of_slices_have_names_of_their_own() {
    let slice = ("discovery.k8s.io", "v1", "EndpointSlice");
    let ports = json!([{"name": "http", "port": 80}, {"name": "http", "port": 81}]);
    check(
        slice,
        json!({"metadata": {"name": "a", "namespace": "a"}, "addressType": "IPv4", "endpoints": [], "ports": ports}),
        &[r#"ports[1].name: Duplicate value: "http""#],
    );
}

#[test]
fn endpoints_can_be_reached() {
    let endpoints = |ip: &str, port: Value, expect: &[&str]| {
        let subsets = json!([{"addresses": [{"ip": ip}], "ports": [port]}]);
        check(
            ("", "v1", "Endpoints"),
            json!({"metadata": {"name": "a", "namespace": "a"}, "subsets": subsets}),
            expect,
        );
    };
    endpoints("10.1.2.3", json!({"port": 80}), &[]);
    endpoints("127.0.0.1", json!({"port": 80}), &[]);
    endpoints(
        "80",
        json!({"port": 80}),
        &[
            r#"subsets[0].addresses[0].ip: Invalid value: "80": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"#,
            r#"subsets[0].addresses[0].ip: Invalid value: "80": must be a valid IP address"#,
        ],
    );
    endpoints(
        "169.254.0.1",
        json!({"port": 0}),
        &[
            r#"subsets[0].addresses[0].ip: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)"#,
            "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        ],
    );
}

#[test]
fn budgets_may_have_any_name() {
    let budget = ("policy", "v1", "PodDisruptionBudget");
    check_update(budget, None, json!({"metadata": {"generateName": "TCP-", "name": "TCP-x", "namespace": "a"}}), &[]);
}

#[test]
fn more_is_not_ready_than_there_is() {
    let status = |kind: (&str, &str, &str), status: Value, expect: &[&str]| {
        let mut new = deployment(json!({"app": "a"}));
        let old = prepared(kind, new.clone());
        new["status"] = status;
        let known = builtin().by_kind(kind.0, kind.1, kind.2).unwrap();
        let errors = validate_builtin_status(known, &prepared(kind, new), Some(&old));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    };
    status(DEPLOYMENT, json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}), &[]);
    status(
        DEPLOYMENT,
        json!({"replicas": 1, "readyReplicas": 2}),
        &["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"],
    );
    status(
        REPLICA_SET,
        json!({"replicas": -1}),
        &[
            "status.replicas: Invalid value: -1: must be greater than or equal to 0",
            "status.fullyLabeledReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
        ],
    );
}

#[test]
fn claims_of_a_stateful_set_are_volumes_of_its_pods() {
    let claims = |claims: Value| {
        with(|spec| {
            spec["template"]["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
            spec["volumeClaimTemplates"] = claims;
        })
    };
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    check(STATEFUL_SET, claims(json!([{"metadata": {"name": "v"}, "spec": spec}])), &[]);
    let nameless = [
        "spec.template.spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        "spec.template.spec.volumes[0].name: Required value",
    ];
    check(STATEFUL_SET, claims(json!([{"spec": spec}])), &nameless);
}
