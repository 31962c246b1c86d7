//! Taints of nodes and the tolerations of Pods.

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint, Toleration};

/// How many taints of the node speak against it without forbidding it.
pub(crate) fn discouraging(spec: &PodSpec, node: &Node) -> usize {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let soft = taints.iter().filter(|taint| taint.effect == "PreferNoSchedule");
    soft.filter(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint))).count()
}

/// The first taint of the node that keeps the Pod away.
pub(crate) fn untolerated<'a>(spec: &PodSpec, node: &'a Node) -> Option<&'a Taint> {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let repels = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(repels).find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// Whether the toleration covers the taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let value = || toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    let covers_value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => !key.is_empty() && value(),
        Some(_) => false,
    };
    (effect.is_empty() || effect == taint.effect) && (key.is_empty() || key == taint.key) && covers_value
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_toleration_covers_key_value_and_effect() {
        let taint: Taint =
            serde_json::from_value(json!({"key": "dedicated", "value": "db", "effect": "NoSchedule"})).unwrap();
        let check = |toleration: Value, expect| {
            assert_eq!(tolerates(&serde_json::from_value(toleration.clone()).unwrap(), &taint), expect, "{toleration}");
        };
        check(json!({"key": "dedicated", "value": "db"}), true);
        check(json!({"key": "dedicated", "operator": "Equal", "value": "web"}), false);
        check(json!({"key": "dedicated", "operator": "Exists"}), true);
        check(json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}), false);
        check(json!({"operator": "Exists"}), true);
        check(json!({"key": "other", "operator": "Exists"}), false);
        check(json!({}), false);
    }
}
