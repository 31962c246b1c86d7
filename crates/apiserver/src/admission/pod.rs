//! Pods stay on a node in trouble for a while, unless they say otherwise.

use serde_json::{Value, json};

use super::{Operation, Review};

const TOLERATION_SECONDS: i64 = 300;
const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

pub(super) fn tolerate_node_problems(review: &mut Review<'_>) {
    // Updates too: who sends back fewer tolerations gets these again.
    if !review.is(Operation::Create, "", "pods") && !review.is(Operation::Update, "", "pods") {
        return;
    }
    let spec = &mut review.object["spec"];
    if !spec.is_object() {
        return;
    }
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for taint in TAINTS {
        if !tolerations.iter().any(|toleration| tolerates(toleration, taint)) {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
            }));
        }
    }
    spec["tolerations"] = Value::Array(tolerations);
}

fn tolerates(toleration: &Value, taint: &str) -> bool {
    let text = |field: &str| toleration[field].as_str().unwrap_or_default();
    (text("key").is_empty() || text("key") == taint) && matches!(text("effect"), "" | "NoExecute")
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;

    fn keys(tolerations: &Value) -> Vec<Value> {
        let user = User::master("test");
        let mut review = creation(&user, "", "pods", "red", json!({"spec": {"tolerations": tolerations}}));
        tolerate_node_problems(&mut review);
        let tolerations = review.object["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        tolerations.iter().map(|toleration| toleration["key"].clone()).collect()
    }

    #[test]
    fn what_a_pod_says_stays() {
        assert_eq!(keys(&Value::Null), TAINTS);
        assert_eq!(keys(&json!([{"key": TAINTS[0], "effect": "NoExecute"}])), TAINTS);
        assert_eq!(keys(&json!([{"key": TAINTS[0], "effect": "NoSchedule"}])), [TAINTS[0], TAINTS[0], TAINTS[1]]);
        assert_eq!(keys(&json!([{"operator": "Exists"}])), [Value::Null]);
    }
}
