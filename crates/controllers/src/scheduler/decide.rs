//! Which node a Pod goes to, or why to none.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kube::ResourceExt;

use super::fit::{Footprint, Load};
use super::loads::Loads;
use super::{affinity, taints};
use crate::pods;

/// What to do with a Pod that has no node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Not for this scheduler, or bound, finished or leaving.
    Ignore,
    /// Scheduling gates are closed.
    Gated,
    Bind(String),
    Unschedulable(String),
}

/// Nodes and what is on them.
pub(crate) struct Board<'a> {
    nodes: Vec<(&'a Node, Load)>,
}

impl<'a> Board<'a> {
    /// The nodes with their loads.
    pub(crate) fn new(nodes: &[&'a Node], loads: &Loads) -> Self {
        Self { nodes: nodes.iter().map(|node| (*node, loads.of(node))).collect() }
    }

    /// Decides about one Pod.
    pub(crate) fn decide(&self, pod: &Pod) -> Decision {
        let Some(spec) = pod.spec.as_ref().filter(|spec| is_ours(pod, spec)) else { return Decision::Ignore };
        if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
            return Decision::Gated;
        }
        let footprint = Footprint::of(spec);
        let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
        let mut admitted = vec![];
        for (node, load) in &self.nodes {
            let mut reasons: Vec<String> = refuse(spec, node).into_iter().collect();
            if reasons.is_empty() {
                reasons = load.refusals(&footprint, node);
            }
            if reasons.is_empty() {
                admitted.push((node, load));
            }
            reasons.into_iter().for_each(|reason| *refusals.entry(reason).or_default() += 1);
        }
        let best = admitted
            .into_iter()
            .min_by_key(|(node, load)| (-affinity::preference(spec, node), load.pods(), node.name_any()));
        match best {
            Some((node, _)) => Decision::Bind(node.name_any()),
            None => Decision::Unschedulable(explain(self.nodes.len(), &refusals)),
        }
    }
}

fn is_ours(pod: &Pod, spec: &PodSpec) -> bool {
    let scheduler = spec.scheduler_name.as_deref().unwrap_or("default-scheduler");
    scheduler == "default-scheduler" && pods::node(pod).is_none() && pods::is_active(pod)
}

/// Why the node is not for this Pod, however much room it has.
fn refuse(spec: &PodSpec, node: &Node) -> Option<String> {
    let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
    if unschedulable {
        let taint = k8s_openapi::api::core::v1::Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Default::default()
        };
        let tolerated = spec.tolerations.iter().flatten().any(|toleration| taints::tolerates(toleration, &taint));
        if !tolerated {
            return Some("node(s) were unschedulable".to_owned());
        }
    }
    if let Some(taint) = taints::untolerated(spec, node) {
        let value = taint.value.as_deref().unwrap_or_default();
        return Some(format!("node(s) had untolerated taint {{{}: {value}}}", taint.key));
    }
    (!affinity::admits(spec, node)).then(|| "node(s) didn't match Pod's node affinity/selector".to_owned())
}

fn explain(nodes: usize, refusals: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let mut reasons: Vec<String> = refusals.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, spec: Value, cpu: &str) -> Node {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec,
            "status": {"allocatable": {"cpu": cpu, "memory": "1Gi", "pods": "2"}}}))
        .unwrap()
    }

    fn pod(node: Option<&str>, cpu: &str, extra: Value) -> Pod {
        let mut spec = json!({"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}},
            "ports": [{"containerPort": 80, "hostPort": extra.get("port").cloned().unwrap_or(json!(0))}]}]});
        for (key, value) in extra.as_object().unwrap() {
            spec[key] = value.clone();
        }
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).unwrap()
    }

    fn check(nodes: &[Node], placed: &[Pod], pod: &Pod, expect: Decision) {
        let mut loads = Loads::default();
        for (number, pod) in placed.iter().enumerate() {
            let mut pod = pod.clone();
            pod.metadata.uid = Some(number.to_string());
            loads.place(&pod, pods::node(&pod).unwrap());
        }
        assert_eq!(Board::new(&nodes.iter().collect::<Vec<_>>(), &loads).decide(pod), expect);
    }

    fn refused(message: &str) -> Decision {
        Decision::Unschedulable(message.to_owned())
    }

    #[test]
    fn a_pod_goes_where_it_may_and_fits() {
        let free = || node("free", json!({}), "2");
        let tainted = node("tainted", json!({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}), "2");
        let closed = node("closed", json!({"unschedulable": true}), "2");
        let bind = |name: &str| Decision::Bind(name.to_owned());
        let plain = pod(None, "1", json!({}));
        check(&[], &[], &plain, refused("no nodes available to schedule pods"));
        check(&[free()], &[], &plain, bind("free"));
        check(
            &[free()],
            &[pod(Some("free"), "1500m", json!({}))],
            &plain,
            refused("0/1 nodes are available: 1 Insufficient cpu."),
        );
        let two = [pod(Some("free"), "0", json!({})), pod(Some("free"), "0", json!({}))];
        check(&[free()], &two, &plain, refused("0/1 nodes are available: 1 Too many pods."));
        check(&[free(), node("idle", json!({}), "2")], &two[..1], &plain, bind("idle"));
        check(
            &[tainted.clone(), closed.clone()],
            &[],
            &plain,
            refused("0/2 nodes are available: 1 node(s) had untolerated taint {k: v}, 1 node(s) were unschedulable."),
        );
        check(&[tainted], &[], &pod(None, "1", json!({"tolerations": [{"operator": "Exists"}]})), bind("tainted"));
        check(&[closed], &[], &pod(None, "1", json!({"tolerations": [{"operator": "Exists"}]})), bind("closed"));
        check(
            &[free()],
            &[],
            &pod(None, "1", json!({"nodeSelector": {"a": "b"}})),
            refused("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
        );
        let taken = [pod(Some("free"), "0", json!({"port": 8080}))];
        check(
            &[free()],
            &taken,
            &pod(None, "0", json!({"port": 8080})),
            refused("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."),
        );
    }

    #[test]
    fn some_pods_are_left_alone() {
        let nodes = [node("n", json!({}), "2")];
        check(&nodes, &[], &pod(Some("n"), "1", json!({})), Decision::Ignore);
        check(&nodes, &[], &pod(None, "1", json!({"schedulerName": "mine"})), Decision::Ignore);
        check(&nodes, &[], &pod(None, "1", json!({"schedulingGates": [{"name": "g"}]})), Decision::Gated);
    }
}
