//! New nodes are kept free of Pods until a controller finds them ready.

use serde_json::{Value, json};

use super::{Operation, Review};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn taint_new(review: &mut Review<'_>) {
    if !review.is(Operation::Create, "", "nodes") || !review.object["spec"].is_object() {
        return;
    }
    let taints = &mut review.object["spec"]["taints"];
    if taints.is_null() {
        *taints = Value::Array(Vec::new());
    }
    let Some(taints) = taints.as_array_mut() else { return };
    if !taints.iter().any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule") {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

#[cfg(test)]
mod tests {
    use super::super::review::tests::creation;
    use super::*;
    use crate::auth::User;

    #[test]
    fn a_node_is_tainted_once() {
        let user = User::master("test");
        let own = json!({"key": NOT_READY, "effect": "NoSchedule"});
        for (given, expect) in [
            (json!({}), json!([own])),
            (json!({"taints": [{"key": "mine"}]}), json!([{"key": "mine"}, own])),
            (json!({"taints": [own]}), json!([own])),
        ] {
            let mut review = creation(&user, "", "nodes", "", json!({"spec": given}));
            taint_new(&mut review);
            assert_eq!(review.object["spec"]["taints"], expect);
        }
    }
}
