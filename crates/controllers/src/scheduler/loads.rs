//! Which Pods are on which nodes, what they take there, and for whom room is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use windlass_runtime::Change;

use super::fit::{Footprint, Load};
use super::neighbours::is_choosy;
use crate::pods;

/// Pods by node, counted as they come and go. A Pod counts from the decision on, not only once its binding is seen.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    by_node: HashMap<String, Place>,
    /// The node of each Pod, by its UID.
    placed: HashMap<String, String>,
    /// Pods for which others were sent away, by their UID, until they are placed.
    nominated: BTreeMap<String, Nominee>,
    /// How many Pods have a say in who is beside them.
    choosy: usize,
}

/// A node with its Pods.
#[derive(Debug, Default)]
struct Place {
    load: Load,
    residents: HashMap<String, Resident>,
}

/// A Pod on a node.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub(crate) pod: Arc<Pod>,
    pub(crate) footprint: Footprint,
}

#[derive(Debug)]
struct Nominee {
    node: String,
    priority: i32,
    footprint: Footprint,
}

impl Loads {
    /// Takes in what became of a Pod.
    pub(crate) fn observe(&mut self, change: &Change<Pod>) {
        if let Some(old) = change.old.as_deref().filter(|old| change.new.as_deref().map(uid) != Some(uid(old))) {
            self.remove(&uid(old));
            self.nominated.remove(&uid(old));
        }
        let Some(pod) = &change.new else { return };
        if !pods::is_active(pod) {
            self.nominated.remove(&uid(pod));
        }
        match pods::node(pod) {
            _ if pods::is_finished(pod) => self.remove(&uid(pod)),
            Some(node) => self.place(pod, node),
            // Not bound, as far as the cache knows: a decision in progress stands.
            None => self.renominate(pod),
        }
    }

    /// Counts the Pod on the node.
    pub(crate) fn place(&mut self, pod: &Arc<Pod>, node: &str) {
        let uid = uid(pod);
        self.nominated.remove(&uid);
        self.remove(&uid);
        let footprint = Footprint::of_placed(pod);
        let place = self.by_node.entry(node.to_owned()).or_default();
        place.load.add(&footprint);
        self.choosy += usize::from(is_choosy(pod));
        place.residents.insert(uid.clone(), Resident { pod: pod.clone(), footprint });
        self.placed.insert(uid, node.to_owned());
    }

    /// Counts the Pod no longer.
    pub(crate) fn remove(&mut self, uid: &str) {
        let Some(place) = self.placed.remove(uid).and_then(|node| self.by_node.get_mut(&node)) else { return };
        if let Some(resident) = place.residents.remove(uid) {
            place.load.remove(&resident.footprint);
            self.choosy -= usize::from(is_choosy(&resident.pod));
        }
    }

    /// Whether the Pod has a place.
    pub(crate) fn has(&self, pod: &Pod) -> bool {
        self.placed.contains_key(&uid(pod))
    }

    /// Whether some Pod has a say in who is beside it.
    pub(crate) fn has_choosy(&self) -> bool {
        self.choosy > 0
    }

    /// Keeps room on the node for the Pod, against all that are less important.
    pub(crate) fn nominate(&mut self, pod: &Pod, node: &str) {
        let footprint = pod.spec.as_ref().map(Footprint::of).unwrap_or_default();
        self.nominated.insert(uid(pod), Nominee { node: node.to_owned(), priority: priority(pod), footprint });
    }

    /// Keeps no room for the Pod any longer.
    pub(crate) fn dismiss(&mut self, pod: &Pod) {
        self.nominated.remove(&uid(pod));
    }

    /// Keeps no room on the node any longer for those less important than `pod`; their UIDs.
    pub(crate) fn supplant(&mut self, pod: &Pod, node: &str) -> Vec<String> {
        let least = priority(pod);
        self.nominated.extract_if(.., |_, it| it.node == node && it.priority < least).map(|(uid, _)| uid).collect()
    }

    fn renominate(&mut self, pod: &Pod) {
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
        if let Some(node) = nominated.filter(|node| !node.is_empty() && pods::is_active(pod) && !self.has(pod)) {
            self.nominate(pod, node);
        }
    }

    /// The load of a node as `pod` finds it: with the room that is kept for Pods which go before it.
    pub(crate) fn of(&self, node: &str, pod: &Pod) -> Load {
        let mut load = self.by_node.get(node).map(|place| place.load.clone()).unwrap_or_default();
        let (uid, priority) = (uid(pod), priority(pod));
        let before = self.nominated.iter().filter(|(nominee, it)| it.node == node && **nominee != uid);
        before.filter(|(_, it)| it.priority >= priority).for_each(|(_, it)| load.add(&it.footprint));
        load
    }

    /// The Pods of a node.
    pub(crate) fn on(&self, node: &str) -> impl Iterator<Item = &Resident> {
        self.by_node.get(node).into_iter().flat_map(|place| place.residents.values())
    }

    /// All Pods with their nodes.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Arc<Pod>)> + Clone {
        self.by_node
            .iter()
            .flat_map(|(node, place)| place.residents.values().map(move |resident| (node.as_str(), &resident.pod)))
    }
}

/// The priority of a Pod.
pub(crate) fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0)
}

fn uid(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, node: Option<&str>, phase: &str) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": "p", "uid": uid}, "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase}});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn a_pod_counts_from_the_decision_to_its_end() {
        let mut loads = Loads::default();
        let stranger = pod("stranger", None, "Pending");
        let count = |loads: &Loads| loads.of("n", &stranger).pods().to_string();
        let change = |old, new| Change { old, new, listed: false };
        loads.place(&pod("u", None, "Pending"), "n");
        assert_eq!(count(&loads), "1");
        loads.observe(&change(Some(pod("u", None, "Pending")), Some(pod("u", None, "Pending"))));
        assert_eq!(count(&loads), "1", "the cache is behind");
        loads.observe(&change(Some(pod("u", None, "Pending")), Some(pod("u", Some("n"), "Running"))));
        assert_eq!(count(&loads), "1", "not twice");
        loads.observe(&change(Some(pod("u", Some("n"), "Running")), Some(pod("u", Some("n"), "Succeeded"))));
        assert_eq!(count(&loads), "0");
        loads.place(&pod("u", None, "Pending"), "n");
        loads.observe(&change(Some(pod("u", Some("n"), "Running")), None));
        assert_eq!(count(&loads), "0");
    }

    #[test]
    fn room_is_kept_for_who_goes_before() {
        let mut loads = Loads::default();
        let important = |uid: &str, priority: i32| {
            let mut pod = Pod::clone(&pod(uid, None, "Pending"));
            pod.spec.as_mut().unwrap().priority = Some(priority);
            Arc::new(pod)
        };
        let waiting = important("w", 5);
        loads.nominate(&waiting, "n");
        let seen = |loads: &Loads, pod: &Pod| loads.of("n", pod).pods().to_string();
        assert_eq!(seen(&loads, &waiting), "0", "not against itself");
        assert_eq!(seen(&loads, &important("a", 9)), "0");
        assert_eq!(seen(&loads, &important("b", 5)), "1");
        assert!(loads.supplant(&important("a", 5), "n").is_empty(), "not less important");
        assert_eq!(loads.supplant(&important("a", 9), "n"), ["w"]);
        assert_eq!(seen(&loads, &important("b", 5)), "0");
        loads.place(&waiting, "n");
        assert_eq!(seen(&loads, &important("a", 9)), "1", "counted once it is there");
    }
}
