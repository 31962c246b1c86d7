//! Whether an object has become what was asked for.

use serde_json::Value;

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It is as it should be; what it consists of, where that is known.
    Ready(String),
    /// It is on its way: what is missing.
    Waiting(String),
    /// It cannot become ready without a change: why.
    Stalled(String),
}

/// Judges an object by its own status: conditions, replica counts, or its mere existence.
pub(crate) fn judge(object: &Value) -> Readiness {
    let status = &object["status"];
    if let Some(stalled) = condition(status, "Stalled").filter(|one| one["status"] == "True") {
        return Readiness::Stalled(message(stalled));
    }
    if behind(object) {
        return Readiness::Waiting("not yet seen by its controller".to_owned());
    }
    match object["kind"].as_str() {
        Some("Deployment" | "ReplicaSet" | "StatefulSet") => replicas(object),
        Some("Pod") => by_condition(status, "Ready"),
        Some("CustomResourceDefinition") => by_condition(status, "Established"),
        _ if condition(status, "Ready").is_some() => by_condition(status, "Ready"),
        _ if is_custom(object) && status.is_null() => Readiness::Waiting("not yet seen by its operator".to_owned()),
        _ => Readiness::Ready(String::new()),
    }
}

fn behind(object: &Value) -> bool {
    let observed = object["status"]["observedGeneration"].as_i64();
    observed.is_some_and(|observed| observed < object["metadata"]["generation"].as_i64().unwrap_or(0))
}

/// Kinds outside Kubernetes' own groups are an operator's, and an operator reports.
fn is_custom(object: &Value) -> bool {
    let group =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
    group.contains('.') && !group.ends_with(".k8s.io")
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

fn by_condition(status: &Value, kind: &str) -> Readiness {
    match condition(status, kind) {
        Some(one) if one["status"] == "True" => Readiness::Ready(message(one)),
        Some(one) => Readiness::Waiting(message(one)),
        None => Readiness::Waiting("no word yet".to_owned()),
    }
}

fn message(condition: &Value) -> String {
    let text = condition["message"].as_str().filter(|text| !text.is_empty()).or(condition["reason"].as_str());
    text.unwrap_or_default().to_owned()
}

fn replicas(object: &Value) -> Readiness {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let status = &object["status"];
    let ready = status["readyReplicas"].as_i64().unwrap_or(0);
    let updated = status["updatedReplicas"].as_i64().unwrap_or(ready);
    let text = format!("{ready} of {wanted} replicas ready");
    if ready >= wanted && updated >= wanted && !status["observedGeneration"].is_null() {
        Readiness::Ready(text)
    } else {
        Readiness::Waiting(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Value, expect: Readiness) {
        assert_eq!(judge(&object), expect, "{object}");
    }

    #[test]
    fn objects_are_judged_by_what_they_say_of_themselves() {
        let ready = |text: &str| Readiness::Ready(text.to_owned());
        let waiting = |text: &str| Readiness::Waiting(text.to_owned());
        let with = |api: &str, kind: &str, status: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"generation": 2}, "status": status});
        check(json!({"apiVersion": "v1", "kind": "ConfigMap"}), ready(""));
        check(json!({"apiVersion": "cache.example.com/v1", "kind": "Cache"}), waiting("not yet seen by its operator"));
        check(with("e.com/v1", "C", json!({"observedGeneration": 1})), waiting("not yet seen by its controller"));
        check(
            with("e.com/v1", "C", json!({"conditions": [{"type": "Ready", "status": "True", "message": "3 of 3"}]})),
            ready("3 of 3"),
        );
        check(
            with("e.com/v1", "C", json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Starting"}]})),
            waiting("Starting"),
        );
        check(
            with("e.com/v1", "C", json!({"conditions": [{"type": "Stalled", "status": "True", "message": "bad"}]})),
            Readiness::Stalled("bad".to_owned()),
        );
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}, "metadata": {"generation": 1},
            "status": {"observedGeneration": 1, "readyReplicas": 2, "updatedReplicas": 3}});
        check(deployment, waiting("2 of 3 replicas ready"));
    }
}
