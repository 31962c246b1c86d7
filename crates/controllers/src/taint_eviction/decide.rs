//! How long a Pod may stay on a tainted node.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, PodSpec, Taint, Toleration};

use crate::scheduler::tolerates;

/// How long a Pod may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    Forever,
    For(SignedDuration),
}

/// How long a Pod may stay on the node: the shortest time that a toleration which is needed gives, and none at all if a
/// taint is not tolerated.
pub(crate) fn stay(spec: &PodSpec, node: &Node) -> Stay {
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let mut shortest: Option<i64> = None;
    for taint in no_execute(node) {
        let tolerating: Vec<&Toleration> =
            tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
        if tolerating.is_empty() {
            return Stay::For(SignedDuration::ZERO);
        }
        let seconds = tolerating.iter().filter_map(|toleration| toleration.toleration_seconds).min();
        shortest = shortest.into_iter().chain(seconds).min();
    }
    shortest.map_or(Stay::Forever, |seconds| Stay::For(SignedDuration::from_secs(seconds.max(0))))
}

/// The taints that send Pods away.
pub(crate) fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.iter().filter(|taint| taint.effect == "NoExecute")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pod_stays_as_long_as_it_tolerates_all_taints() {
        let check = |taints: &[&str], tolerations: Value, expect: Option<i64>| {
            let taints: Vec<Value> = taints.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
            let node: Node = serde_json::from_value(json!({"spec": {"taints": taints}})).unwrap();
            let spec = serde_json::from_value(json!({"containers": [], "tolerations": tolerations})).unwrap();
            let expect = expect.map_or(Stay::Forever, |seconds| Stay::For(SignedDuration::from_secs(seconds)));
            assert_eq!(stay(&spec, &node), expect, "{tolerations}");
        };
        let toleration =
            |key: &str, seconds: Option<i64>| json!({"key": key, "operator": "Exists", "tolerationSeconds": seconds});
        check(&[], json!([]), None);
        check(&["a"], json!([]), Some(0));
        check(&["a"], json!([toleration("a", None)]), None);
        check(&["a"], json!([toleration("a", Some(9))]), Some(9));
        check(&["a"], json!([toleration("a", Some(-5))]), Some(0));
        check(&["a", "b"], json!([toleration("a", Some(9))]), Some(0));
        check(&["a", "b"], json!([toleration("a", Some(9)), toleration("b", Some(3))]), Some(3));
        check(&["a"], json!([toleration("a", None), toleration("a", Some(9))]), Some(9));
    }
}
