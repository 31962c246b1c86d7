//! Which Pods are on which nodes, and what they take there.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use windlass_runtime::Change;

use super::fit::{Footprint, Load};
use crate::pods;

/// Pods by node, counted as they come and go. A Pod counts from the decision on, not only once its binding is seen.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    by_node: HashMap<String, Load>,
    placed: HashMap<String, Placed>,
}

#[derive(Debug)]
struct Placed {
    node: String,
    footprint: Footprint,
}

impl Loads {
    /// Takes in what became of a Pod.
    pub(crate) fn observe(&mut self, change: &Change<Pod>) {
        let uid = |pod: &Pod| pod.uid().unwrap_or_default();
        if let Some(old) = change.old.as_deref().filter(|old| change.new.as_deref().map(uid) != Some(uid(old))) {
            self.remove(&uid(old));
        }
        let Some(pod) = change.new.as_deref() else { return };
        match pods::node(pod) {
            _ if pods::is_finished(pod) => self.remove(&uid(pod)),
            Some(node) => self.place(pod, node),
            // Not bound, as far as the cache knows: a decision in progress stands.
            None => {}
        }
    }

    /// Counts the Pod on the node.
    pub(crate) fn place(&mut self, pod: &Pod, node: &str) {
        let uid = pod.uid().unwrap_or_default();
        if self.placed.get(&uid).is_some_and(|placed| placed.node == node) {
            return;
        }
        self.remove(&uid);
        let footprint = pod.spec.as_ref().map(Footprint::of).unwrap_or_default();
        self.by_node.entry(node.to_owned()).or_default().add(&footprint);
        self.placed.insert(uid, Placed { node: node.to_owned(), footprint });
    }

    /// Counts the Pod no longer.
    pub(crate) fn remove(&mut self, uid: &str) {
        let Some(Placed { node, footprint }) = self.placed.remove(uid) else { return };
        if let Some(load) = self.by_node.get_mut(&node) {
            load.remove(&footprint);
        }
    }

    /// Whether the Pod has a place.
    pub(crate) fn has(&self, pod: &Pod) -> bool {
        self.placed.contains_key(&pod.uid().unwrap_or_default())
    }

    /// The load of a node.
    pub(crate) fn of(&self, node: &Node) -> Load {
        self.by_node.get(&node.name_any()).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn pod(node: Option<&str>, phase: &str) -> Option<Arc<Pod>> {
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase}});
        Some(Arc::new(serde_json::from_value(pod).unwrap()))
    }

    #[test]
    fn a_pod_counts_from_the_decision_to_its_end() {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let mut loads = Loads::default();
        let count = |loads: &Loads| loads.of(&node).pods().to_string();
        let change = |old, new| Change { old, new, listed: false };
        loads.place(&pod(None, "Pending").unwrap(), "n");
        assert_eq!(count(&loads), "1");
        loads.observe(&change(pod(None, "Pending"), pod(None, "Pending")));
        assert_eq!(count(&loads), "1", "the cache is behind");
        loads.observe(&change(pod(None, "Pending"), pod(Some("n"), "Running")));
        assert_eq!(count(&loads), "1", "not twice");
        loads.observe(&change(pod(Some("n"), "Running"), pod(Some("n"), "Succeeded")));
        assert_eq!(count(&loads), "0");
        loads.place(&pod(None, "Pending").unwrap(), "n");
        loads.observe(&change(pod(Some("n"), "Running"), None));
        assert_eq!(count(&loads), "0");
    }
}
