//! The flow schemas and priority levels of a new cluster.

use serde_json::{Value, json};

use super::Wanted;
use crate::{flow::condition, object::Object};

/// The annotation by which an administrator takes an object over.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// The levels: name, shares, lendable percent, and queues, hand and length if requests may wait.
const LEVELS: [(&str, u32, u32, Option<[u32; 3]>); 7] = [
    ("catch-all", 5, 0, None),
    ("system", 30, 33, Some([64, 6, 50])),
    ("node-high", 40, 25, Some([64, 6, 50])),
    ("leader-election", 10, 0, Some([16, 4, 50])),
    ("workload-high", 40, 50, Some([128, 6, 50])),
    ("workload-low", 100, 90, Some([128, 6, 50])),
    ("global-default", 20, 50, Some([128, 6, 50])),
];
/// The schemas for everything that these subjects do: name, level, precedence, distinguisher, subjects.
const EVERYTHING: [(&str, &str, u32, &str, &[&str]); 8] = [
    ("exempt", "exempt", 1, "", &["group:system:masters"]),
    ("system-nodes", "system", 500, "ByUser", &["group:system:nodes"]),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", &["user:system:kube-controller-manager"]),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", &["user:system:kube-scheduler"]),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", &["account:*"]),
    ("service-accounts", "workload-low", 9000, "ByUser", &["group:system:serviceaccounts"]),
    ("global-default", "global-default", 9900, "ByUser", &EVERYBODY),
    ("catch-all", "catch-all", 10000, "ByUser", &EVERYBODY),
];
const EVERYBODY: [&str; 2] = ["group:system:unauthenticated", "group:system:authenticated"];

/// All of them.
pub(super) fn flows() -> Vec<Wanted> {
    let exempt = json!({"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    let levels = LEVELS.iter().map(|(name, shares, lendable, queuing)| {
        let response = match queuing {
            None => json!({"type": "Reject"}),
            Some([queues, hand, length]) => {
                let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": length});
                json!({"type": "Queue", "queuing": queuing})
            }
        };
        let limited =
            json!({"nominalConcurrencyShares": shares, "lendablePercent": lendable, "limitResponse": response});
        object("PriorityLevelConfiguration", name, &json!({"type": "Limited", "limited": limited}))
    });
    let schemas = EVERYTHING.iter().map(|(name, level, precedence, by, subjects)| {
        let rule = json!({"resourceRules": [all_resources()], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]});
        schema((name, level, *precedence, by), subjects, rule)
    });
    let narrow = [probes(), leader_election(), node_high()];
    std::iter::once(object("PriorityLevelConfiguration", "exempt", &exempt))
        .chain(levels)
        .chain(schemas)
        .chain(narrow)
        .collect()
}

fn all_resources() -> Value {
    json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true})
}

fn leases(verbs: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]})
}

fn probes() -> Wanted {
    let paths = json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]);
    schema(("probes", "exempt", 2, ""), &EVERYBODY, json!({ "nonResourceRules": paths }))
}

fn leader_election() -> Wanted {
    let subjects = ["user:system:kube-controller-manager", "user:system:kube-scheduler", "account:*"];
    let rule = json!({"resourceRules": [leases(&["get", "create", "update"])]});
    schema(("system-leader-election", "leader-election", 100, "ByUser"), &subjects, rule)
}

fn node_high() -> Wanted {
    let mut nodes = all_resources();
    nodes["apiGroups"] = json!([""]);
    nodes["resources"] = json!(["nodes", "nodes/status"]);
    let rule = json!({"resourceRules": [nodes, leases(&["*"])]});
    schema(("system-node-high", "node-high", 400, "ByUser"), &["group:system:nodes"], rule)
}

fn schema((name, level, precedence, by): (&str, &str, u32, &str), subjects: &[&str], mut rule: Value) -> Wanted {
    rule["subjects"] = subjects.iter().map(|subject| subject_of(subject)).collect();
    let mut spec = json!({
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [rule],
    });
    if !by.is_empty() {
        spec["distinguisherMethod"] = json!({ "type": by });
    }
    let mut wanted = object("FlowSchema", name, &spec);
    wanted.object["status"]["conditions"] = json!([condition(level, true)]);
    wanted
}

fn subject_of(text: &str) -> Value {
    match text.split_once(':') {
        Some(("group", name)) => json!({"kind": "Group", "group": {"name": name}}),
        Some(("user", name)) => json!({"kind": "User", "user": {"name": name}}),
        _ => json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}),
    }
}

fn object(kind: &str, name: &str, spec: &Value) -> Wanted {
    let plural = if kind == "FlowSchema" { "flowschemas" } else { "prioritylevelconfigurations" };
    let object = json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind,
        "metadata": {"name": name, "generation": 1, "annotations": {AUTO_UPDATE: "true"}},
        "spec": spec, "status": {},
    });
    let mandatory = ["exempt", "catch-all"].contains(&name);
    let reconcile = if mandatory { restore } else { restore_unless_taken_over };
    Wanted::new(format!("/flowcontrol.apiserver.k8s.io/{plural}/{name}"), object, reconcile)
}

fn restore(live: &mut Value, wanted: &Value) {
    // How much the exempt level lends is for the administrator to say.
    let tuned = live.name() == "exempt" && live["kind"] == "PriorityLevelConfiguration";
    if live["spec"] != wanted["spec"] && !tuned {
        live["spec"] = wanted["spec"].clone();
        let generation = live.generation() + 1;
        live.set_meta("generation", generation);
    }
}

fn restore_unless_taken_over(live: &mut Value, wanted: &Value) {
    if live.annotation(AUTO_UPDATE) == Some("true") {
        restore(live, wanted);
    }
}
