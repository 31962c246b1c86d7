//! Which node a Pod goes to, or why to none.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;

use super::fit::{Footprint, Load};
use super::loads::Loads;
use super::neighbours::{Clash, Neighbours};
use super::preempt::Preemption;
use super::spread::Spread;
use super::storage::Need;
use super::terms::NamespaceLabels;
use super::worth::Worth;
use super::{affinity, neighbours, spread, taints};
use crate::pods;

/// What to do with a Pod that has no node.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision {
    /// Not for this scheduler, or bound, finished or leaving.
    Ignore,
    /// Scheduling gates are closed.
    Gated,
    Bind(String),
    Unschedulable(String),
    /// No node has room, but one would without some that are less important.
    Preempt {
        plan: Preemption,
        why: String,
    },
}

/// Nodes and what is on them.
pub(crate) struct Board<'a> {
    pub(super) nodes: Vec<&'a Node>,
    pub(super) loads: &'a Loads,
    pub(super) labels_of: NamespaceLabels<'a>,
    pub(super) budgets: &'a [Arc<PodDisruptionBudget>],
    /// What the claims of the Pod ask of its node.
    pub(super) needs: &'a [Need],
}

/// Why a node is not for a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    text: String,
    /// Whether it would be the same without any Pod on the node.
    pub(super) is_lasting: bool,
}

impl Refusal {
    fn lasting(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_lasting: true }
    }

    fn passing(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_lasting: false }
    }
}

/// One Pod that looks for a node, among the Pods that have one.
pub(super) struct Trial<'a> {
    spec: &'a PodSpec,
    pub(super) footprint: Footprint,
    neighbours: Option<Neighbours<'a>>,
    spread: Spread<'a>,
    needs: &'a [Need],
    nodes: &'a [&'a Node],
}

impl<'a> Board<'a> {
    /// Decides about one Pod.
    pub(crate) fn decide(&self, pod: &Pod) -> Decision {
        let Some(spec) = pod.spec.as_ref().filter(|spec| is_ours(pod, spec)) else { return Decision::Ignore };
        if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
            return Decision::Gated;
        }
        let trial = self.trial(pod, spec, &HashSet::new());
        let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
        let (mut admitted, mut full) = (vec![], vec![]);
        for node in &self.nodes {
            let load = self.loads.of(&node.name_any(), pod);
            let reasons = trial.refusals(node, &load);
            match reasons.iter().any(|refusal| refusal.is_lasting) {
                _ if reasons.is_empty() => admitted.push((*node, load)),
                false => full.push(*node),
                true => {}
            }
            reasons.into_iter().for_each(|refusal| *refusals.entry(refusal.text).or_default() += 1);
        }
        let worth = Worth::of(spec, &trial.footprint, &self.nodes);
        let best = admitted
            .iter()
            .min_by_key(|(node, load)| (-trial.liking(node), -worth.points(node, load), load.pods(), node.name_any()));
        if let Some((node, _)) = best {
            return Decision::Bind(node.name_any());
        }
        let why = explain(self.nodes.len(), &refusals);
        match self.preemption(pod, spec, &full) {
            Some(plan) => Decision::Preempt { plan, why },
            None => Decision::Unschedulable(why),
        }
    }

    /// The Pod among all Pods but those.
    pub(super) fn trial<'b>(&'b self, pod: &'b Pod, spec: &'b PodSpec, without: &HashSet<&str>) -> Trial<'b> {
        let is_here = |pod: &Pod| pod.metadata.uid.as_deref().is_none_or(|uid| !without.contains(uid));
        let residents = self.loads.all().map(|(node, pod)| (node, &**pod)).filter(|(_, pod)| is_here(pod));
        let node = |name: &str| self.nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name)).copied();
        let matter = self.loads.has_choosy() || neighbours::is_choosy(pod);
        Trial {
            spec,
            footprint: Footprint::of(spec),
            neighbours: matter.then(|| Neighbours::of(pod, residents.clone(), node, self.labels_of)),
            spread: Spread::of(pod, &self.nodes, residents),
            needs: self.needs,
            nodes: &self.nodes,
        }
    }
}

impl Trial<'_> {
    /// Why the node with this load is not for the Pod; empty if it is.
    pub(super) fn refusals(&self, node: &Node, load: &Load) -> Vec<Refusal> {
        if let Some(reason) = refuse(self.spec, node) {
            return vec![Refusal::lasting(reason)];
        }
        let full: Vec<Refusal> = load
            .refusals(&self.footprint, node)
            .into_iter()
            .map(|(text, is_lasting)| Refusal { text, is_lasting })
            .collect();
        if !full.is_empty() {
            return full;
        }
        if let Some(reason) = self.needs.iter().find_map(|need| need.refusal(node, self.nodes)) {
            return vec![Refusal::lasting(reason)];
        }
        if let Some(reason) = self.spread.refusal(node) {
            let is_lasting = reason == spread::UNLABELLED;
            return vec![Refusal { text: reason.to_owned(), is_lasting }];
        }
        let clash = self.neighbours.as_ref().and_then(|neighbours| neighbours.clash(node));
        let refusal = clash.map(|clash| match clash {
            Clash::Missing => Refusal::lasting(clash.text()),
            Clash::Unwanted | Clash::NotWelcome => Refusal::passing(clash.text()),
        });
        refusal.into_iter().collect()
    }

    /// How much the Pod would like the node.
    fn liking(&self, node: &Node) -> i64 {
        let neighbours = self.neighbours.as_ref().map_or(0, |neighbours| neighbours.liking(node));
        let shunned = i64::try_from(taints::discouraging(self.spec, node)).unwrap_or(i64::MAX);
        affinity::preference(self.spec, node) + neighbours - TAINT_POINTS * shunned - self.spread.crowding(node)
    }
}

/// What a taint that only discourages costs, in the points of preferred terms.
const TAINT_POINTS: i64 = 100;

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
            let node = pods::node(&pod).unwrap().to_owned();
            loads.place(&Arc::new(pod), &node);
        }
        let nodes = nodes.iter().collect();
        let board = Board { nodes, loads: &loads, labels_of: &|_| BTreeMap::new(), budgets: &[], needs: &[] };
        assert_eq!(board.decide(pod), expect);
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
