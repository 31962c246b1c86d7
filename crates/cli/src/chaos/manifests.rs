//! What a cluster of somebody else's needs, so that Windlass nodes there carry out chaos.

use kube::CustomResourceExt;
use serde_json::{Value, json};
use windlass_node::chaos::Chaos;

/// The definition of the kind, and the rights of nodes, as YAML. The embedded cluster has both.
pub(crate) fn manifests() -> String {
    let definition = serde_json::to_value(Chaos::crd()).unwrap_or_default();
    let all = [definition, role(), binding()];
    let texts = all.iter().map(|value| serde_saphyr::to_string(value).unwrap_or_default());
    texts.collect::<Vec<_>>().join("---\n")
}

fn role() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
    "metadata": {"name": "windlass-chaos-node"},
    "rules": [
        {"apiGroups": ["windlass.dev"], "resources": ["chaos"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["windlass.dev"], "resources": ["chaos/status"], "verbs": ["update"]},
    ]})
}

fn binding() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "windlass-chaos-node"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "windlass-chaos-node"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}]})
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kind_and_the_rights_of_nodes_are_there() {
        let text = super::manifests();
        for word in ["name: chaos.windlass.dev", "kind: ClusterRole\n", "kind: ClusterRoleBinding", "system:nodes"] {
            assert!(text.contains(word), "no {word:?} in\n{text}");
        }
    }
}
