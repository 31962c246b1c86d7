//! What Pods seem to use that only seem to run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use windlass_runtime::{Change, ObjectKey};
use windlass_schema::kubelet::{
    ContainerStats, CpuStats, MemoryStats, NodeStats, PodReference, PodStats, Stats, Summary,
};

use super::fleet::Fleet;
use super::rule;
use crate::pods;
use crate::quantity::Amount;

/// The time that figures are said to be of, as long as that of a real node.
const WINDOW_NANOSECONDS: u64 = 15_000_000_000;

/// What a container seems to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu: Amount,
    pub(super) memory: Amount,
}

/// What Pods seem to use that only seem to run; a clone tells of the same Pods.
#[derive(Clone, Debug, Default)]
pub struct FakeUsage(Arc<Mutex<ByNode>>);

/// Pods by the name of their node.
type ByNode = HashMap<String, BTreeMap<ObjectKey, Arc<Pod>>>;

impl FakeUsage {
    /// What the `count` nodes of a cluster tell of themselves; `None` for the name of any other.
    pub fn summary(&self, count: usize, node: &str, now: Timestamp) -> Option<Summary> {
        if !Fleet::new(count).has(node) {
            return None;
        }
        let known = self.lock();
        let pods: Vec<PodStats> =
            known.get(node).into_iter().flat_map(BTreeMap::values).filter_map(|pod| figures(pod, now)).collect();
        drop(known);
        let containers = || pods.iter().flat_map(|pod| &pod.containers);
        let total = stats(
            containers().map(|container| container.stats.cpu.usage_nano_cores).sum(),
            containers().map(|container| container.stats.memory.working_set_bytes).sum(),
            now,
        );
        Some(Summary { node: NodeStats { node_name: node.to_owned(), stats: Some(total) }, pods })
    }

    /// Takes note of a Pod.
    pub(super) fn observe(&self, change: &Change<Pod>) {
        let mut known = self.lock();
        let key = change.key();
        for node in change.old.iter().filter_map(|pod| pods::node(pod)) {
            if let Some(pods) = known.get_mut(node) {
                pods.remove(&key);
            }
        }
        let new = change.new.as_ref().filter(|pod| pods::is_active(pod));
        if let Some((pod, node)) = new.and_then(|pod| Some((pod, pods::node(pod)?))) {
            known.entry(node.to_owned()).or_default().insert(key, Arc::clone(pod));
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByNode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a Pod seems to use; `None` if nothing of it runs, or if that is what it says.
fn figures(pod: &Pod, now: Timestamp) -> Option<PodStats> {
    let spec = pod.spec.as_ref()?;
    let all = spec.init_containers.iter().flatten().chain(&spec.containers).filter(|container| runs(pod, container));
    let containers: Vec<ContainerStats> = all
        .filter_map(|container| {
            let usage = rule::of(pod, container).ok()?.usage?;
            let (cpu, memory) = (positive(usage.cpu.nanos()), positive(usage.memory.nanos() / 1_000_000_000));
            Some(ContainerStats { name: container.name.clone(), stats: stats(cpu, memory, now) })
        })
        .collect();
    let pod_ref = PodReference {
        name: pod.name_any(),
        namespace: pod.namespace().unwrap_or_default(),
        uid: pod.uid().unwrap_or_default(),
    };
    (!containers.is_empty()).then_some(PodStats { pod_ref, containers })
}

fn runs(pod: &Pod, container: &Container) -> bool {
    let Some(status) = &pod.status else { return false };
    let mut all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let own = all.find(|status| status.name == container.name);
    own.and_then(|status| status.state.as_ref()?.running.as_ref()).is_some()
}

fn positive(amount: i128) -> u64 {
    u64::try_from(amount.max(0)).unwrap_or(u64::MAX)
}

fn stats(nano_cores: u64, bytes: u64, time: Timestamp) -> Stats {
    Stats {
        cpu: CpuStats { time, usage_nano_cores: nano_cores, window_nanoseconds: WINDOW_NANOSECONDS },
        memory: MemoryStats { time, working_set_bytes: bytes },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, cpu: &str) -> Arc<Pod> {
        let running = json!([{"name": "c", "state": {"running": {}}, "ready": true, "restartCount": 0, "image": "",
            "imageID": ""}]);
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "n", "uid": name, "annotations": {
                    "windlass.dev/fake-cpu": cpu, "windlass.dev/fake-memory": "64Mi"}},
                "spec": {"nodeName": "fake-node-0", "containers": [{"name": "c"}]},
                "status": {"phase": phase, "containerStatuses": running},
            }))
            .unwrap(),
        )
    }

    #[test]
    fn a_node_tells_of_the_pods_that_seem_to_run_on_it() {
        let usage = FakeUsage::default();
        let told = || {
            let summary = usage.summary(1, "fake-node-0", Timestamp::UNIX_EPOCH).unwrap();
            let names: Vec<String> = summary.pods.iter().map(|pod| pod.pod_ref.name.clone()).collect();
            (names.join(" "), summary.node.stats.unwrap().cpu.usage_nano_cores)
        };
        assert_eq!(told(), (String::new(), 0));
        for (name, phase, cpu) in [("a", "Running", "250m"), ("b", "Running", "1"), ("c", "Failed", "1")] {
            usage.observe(&Change { old: None, new: Some(pod(name, phase, cpu)), listed: false });
        }
        usage.observe(&Change { old: None, new: Some(pod("d", "Running", "none")), listed: false });
        assert_eq!(told(), ("a b".to_owned(), 1_250_000_000));
        usage.observe(&Change { old: Some(pod("b", "Running", "1")), new: None, listed: false });
        assert_eq!(told(), ("a".to_owned(), 250_000_000));
        assert_eq!(usage.summary(1, "fake-node-1", Timestamp::UNIX_EPOCH), None);
    }
}
