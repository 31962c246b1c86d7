//! What may not change in objects that are there.

use serde_json::{Value, json};

use super::tests::{JOB, POD, check_update, pod, with_selector};

const FROZEN: &str = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The Pod before, and the Pod after `change` of its spec.
fn change_pod(change: Value, expect: &[&str]) {
    let mut spec = json!({
        "nodeName": "n", "activeDeadlineSeconds": 10, "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
        "containers": [{"name": "a", "image": "a:1", "imagePullPolicy": "Never"}],
    });
    let old = pod(spec.clone());
    for (name, value) in change.as_object().unwrap() {
        spec[name] = value.clone();
    }
    check_update(POD, Some(old), pod(spec), expect);
}

#[test]
fn little_of_a_pod_may_change() {
    let container = |image: &str| json!({"name": "a", "image": image, "imagePullPolicy": "Never"});
    change_pod(json!({"containers": [container("a:2")], "activeDeadlineSeconds": 5}), &[]);
    change_pod(json!({"nodeName": "m"}), &[FROZEN]);
    change_pod(json!({"terminationGracePeriodSeconds": 1}), &[FROZEN]);
    change_pod(
        json!({"containers": [container("a:1"), {"name": "b", "image": "b"}]}),
        &["spec.containers: Forbidden: pod updates may not add or remove containers"],
    );
    change_pod(
        json!({"activeDeadlineSeconds": 11}),
        &["spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"],
    );
    let toleration =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
    change_pod(json!({"tolerations": [toleration("a"), toleration("b")]}), &[]);
    change_pod(
        json!({"tolerations": [toleration("b")]}),
        &["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
    );
    change_pod(
        json!({"schedulingGates": [{"name": "g"}]}),
        &["spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"],
    );
}

#[test]
fn a_pod_at_a_gate_may_narrow_where_it_runs() {
    let gated = |selector: Value, restarts: &str| {
        pod(json!({
            "schedulingGates": [{"name": "g"}], "nodeSelector": selector, "restartPolicy": restarts,
            "containers": [{"name": "a", "image": "a"}],
        }))
    };
    let old = gated(json!({"a": "1"}), "Always");
    check_update(POD, Some(old.clone()), gated(json!({"a": "1", "b": "2"}), "Always"), &[]);
    check_update(
        POD,
        Some(old.clone()),
        gated(json!({"b": "2"}), "Always"),
        &[
            r#"spec.nodeSelector: Invalid value: {"b":"2"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"#,
        ],
    );
    check_update(POD, Some(old), gated(json!({"a": "1"}), "Never"), &[FROZEN]);
}

fn job(image: &str, suspend: bool, pod: Value) -> Value {
    let mut spec = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": image}]});
    for (name, value) in pod.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let job =
        json!({"metadata": {"name": "a", "namespace": "a"}, "spec": {"suspend": suspend, "template": {"spec": spec}}});
    with_selector(job, "1")
}

/// The paths of what may not change.
fn refused(old: Value, new: Value) -> Vec<String> {
    let kind = crate::builtin().by_kind(JOB.0, JOB.1, JOB.2).unwrap();
    let prepare = |object| super::tests::prepared(JOB, object);
    let errors = super::validate_builtin(kind, &prepare(new), Some(&prepare(old)));
    errors.into_iter().map(|error| error.path).collect()
}

#[test]
fn the_pods_of_a_job_stay_as_they_are() {
    let plain = |image| job(image, false, json!({}));
    assert_eq!(refused(plain("a"), plain("b")), ["spec.template"]);
    let suspended = |image, pod| job(image, true, pod);
    assert_eq!(refused(suspended("a", json!({})), suspended("b", json!({}))), ["spec.template.spec"]);
    assert!(refused(suspended("a", json!({})), suspended("a", json!({"nodeSelector": {"a": "1"}}))).is_empty());
    let other = with_selector(plain("a"), "2");
    assert_eq!(refused(plain("a"), other), ["spec.selector", "spec.template"]);
    let mut more = plain("a");
    more["spec"]["completions"] = 3.into();
    assert_eq!(refused(plain("a"), more), ["spec.completions"]);
}

#[test]
fn a_job_finds_its_own_pods() {
    let mut taken = job("a", false, json!({}));
    taken["metadata"]["uid"] = "2".into();
    let kind = crate::builtin().by_kind(JOB.0, JOB.1, JOB.2).unwrap();
    let errors = super::validate_builtin(kind, &super::tests::prepared(JOB, taken), None);
    let details: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
    assert_eq!(details, ["must be '2'", "must be '2'", "`selector` not auto-generated"]);
}

#[test]
fn a_claim_is_bound_once_and_may_grow() {
    const CLAIM: (&str, &str, &str) = ("", "v1", "PersistentVolumeClaim");
    let claim = |size: &str, volume: &str, phase: &str| {
        json!({"metadata": {"name": "a", "namespace": "a"}, "status": {"phase": phase, "capacity": {"storage": "2Gi"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": volume, "resources": {"requests": {"storage": size}}}})
    };
    let frozen = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    check_update(CLAIM, Some(claim("2Gi", "", "Pending")), claim("2Gi", "v", "Pending"), &[]);
    check_update(CLAIM, Some(claim("2Gi", "v", "Bound")), claim("3Gi", "v", "Bound"), &[]);
    check_update(CLAIM, Some(claim("2Gi", "", "Pending")), claim("3Gi", "", "Pending"), &[frozen]);
    check_update(CLAIM, Some(claim("2Gi", "v", "Bound")), claim("2Gi", "w", "Bound"), &[frozen]);
    check_update(
        CLAIM,
        Some(claim("2Gi", "v", "Bound")),
        claim("1Gi", "v", "Bound"),
        &["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
    );
    let mut block = claim("2Gi", "v", "Bound");
    block["spec"]["volumeMode"] = "Block".into();
    let expect = [frozen, r#"volumeMode: Invalid value: "Block": field is immutable"#];
    check_update(CLAIM, Some(claim("2Gi", "v", "Bound")), block, &expect);
}

#[test]
fn conditions_of_pods_have_names() {
    let kind = crate::builtin().by_kind("", "v1", "Pod").unwrap();
    let pod = json!({"metadata": {"name": "a", "namespace": "b"}, "status": {"conditions": [
        {"type": "Ready"}, {"type": "example.com/own"}, {"type": "no name"},
    ]}});
    let errors = crate::validate_builtin_status(kind, &pod, None);
    let paths: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(paths, ["status.conditions[2].Type"]);
}
