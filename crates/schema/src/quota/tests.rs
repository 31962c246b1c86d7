//! Quotas: what counts as what.

use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pod(requests: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

#[track_caller]
fn check(counting: Counting<'_>, object: &Value, expect: Value) {
    assert_eq!(to_value(&counting.usage(object, now())), expect);
    for name in expect.as_object().unwrap().keys() {
        assert!(counting.has(name), "{name}");
    }
}

#[test]
fn pods_count_with_what_they_ask_for() {
    check(
        Counting::Pods,
        &pod(json!({"cpu": "500m", "memory": "252Mi", "example.com/dongle": "2"})),
        json!({"count/pods": "1", "pods": "1", "cpu": "500m", "requests.cpu": "500m", "memory": "252Mi",
            "requests.memory": "252Mi", "requests.example.com/dongle": "2"}),
    );
    let mut ended = pod(json!({"cpu": "1"}));
    ended["status"] = json!({"phase": "Succeeded"});
    check(Counting::Pods, &ended, json!({"count/pods": "1"}));
    let mut overdue = pod(json!({"cpu": "1"}));
    overdue["metadata"] = json!({"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30});
    check(Counting::Pods, &overdue, json!({"count/pods": "1"}));
    assert!(!Counting::Pods.has("services") && !Counting::Pods.has("requests.storage"));
}

#[test]
fn the_largest_init_container_counts_where_it_is_larger() {
    let mut both = pod(json!({"cpu": "1"}));
    both["spec"]["initContainers"] = json!([
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "init", "resources": {"requests": {"cpu": "3"}}},
    ]);
    assert_eq!(Counting::Pods.usage(&both, now())["cpu"].to_string(), "3250m");
    both["spec"]["overhead"] = json!({"cpu": "250m"});
    assert_eq!(Counting::Pods.usage(&both, now())["cpu"].to_string(), "3500m");
}

#[test]
fn services_claims_and_others_count() {
    let service = json!({"spec": {"type": "LoadBalancer", "ports": [{}, {}]}});
    check(
        Counting::Services,
        &service,
        json!({"count/services": "1", "services": "1", "services.nodeports": "2", "services.loadbalancers": "1"}),
    );
    let claim = json!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}}});
    check(
        Counting::Claims,
        &claim,
        json!({"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "1Gi",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}),
    );
    check(Counting::of("apps", "replicasets"), &json!({}), json!({"count/replicasets.apps": "1"}));
    check(Counting::of("", "secrets"), &json!({}), json!({"count/secrets": "1", "secrets": "1"}));
}

#[test]
fn scopes_choose_pods() {
    let in_scope = |quota: Value, pod: &Value| Quota::read(&json!({ "spec": quota })).has_in_scope(Counting::Pods, pod);
    let (plain, asking) = (pod(json!({})), pod(json!({"cpu": "1"})));
    let mut limited = plain.clone();
    limited["spec"]["activeDeadlineSeconds"] = json!(3600);
    assert!(
        in_scope(json!({"scopes": ["BestEffort"]}), &plain) && !in_scope(json!({"scopes": ["BestEffort"]}), &asking)
    );
    assert!(
        in_scope(json!({"scopes": ["Terminating"]}), &limited) && !in_scope(json!({"scopes": ["Terminating"]}), &plain)
    );
    assert!(!in_scope(json!({"scopes": ["NotTerminating"]}), &limited));
    let by_class = |operator: &str, values: Value| json!({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
    let mut urgent = plain.clone();
    urgent["spec"]["priorityClassName"] = json!("urgent");
    assert!(
        in_scope(by_class("In", json!(["urgent"])), &urgent) && !in_scope(by_class("In", json!(["urgent"])), &plain)
    );
    assert!(in_scope(by_class("NotIn", json!(["urgent"])), &plain) && !in_scope(by_class("Exists", json!([])), &plain));
    let mut across = plain.clone();
    across["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!([{"namespaces": ["other"]}]);
    assert!(in_scope(json!({"scopes": ["CrossNamespacePodAffinity"]}), &across));
    assert!(!in_scope(json!({"scopes": ["CrossNamespacePodAffinity"]}), &plain));
}

#[test]
fn a_limit_asks_every_container_to_say_what_it_needs() {
    let limited = || ["cpu", "limits.memory", "pods"].into_iter();
    assert_eq!(
        Counting::Pods.check_complete(limited(), &pod(json!({}))),
        Err("must specify cpu for: c; limits.memory for: c".to_owned())
    );
    assert_eq!(Counting::Pods.check_complete(["cpu"].into_iter(), &pod(json!({"cpu": "1"}))), Ok(()));
    assert_eq!(Counting::Services.check_complete(limited(), &json!({})), Ok(()));
}
