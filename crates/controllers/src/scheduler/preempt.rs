//! Whom to send away so that a more important Pod finds room.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::core::SelectorExt;

use super::decide::Board;
use super::fit::Load;
use super::loads::{Resident, priority};
use super::terms;
use crate::disrupt::{self, Cause};
use crate::pods;

/// Why a Pod had to go.
pub(crate) const CAUSE: Cause = Cause {
    reason: "PreemptionByScheduler",
    message: "default-scheduler: preempting to accommodate a higher priority pod",
};

/// A node, and who has to leave it.
#[derive(Debug, PartialEq)]
pub(crate) struct Preemption {
    pub(crate) node: String,
    pub(crate) victims: Vec<Arc<Pod>>,
    /// How many of them a disruption budget would keep.
    violations: usize,
}

impl Board<'_> {
    /// The least harmful way to make room on one of the nodes, all of which are only full.
    pub(super) fn preemption(&self, pod: &Pod, spec: &PodSpec, full: &[&Node]) -> Option<Preemption> {
        if spec.preemption_policy.as_deref() == Some("Never") || self.waits_for_victims(pod) {
            return None;
        }
        let plans = full.iter().filter_map(|node| self.plan(pod, spec, node));
        plans.min_by_key(|plan| (plan.violations, harm(&plan.victims), plan.node.clone()))
    }

    /// Whether those who were sent away for this Pod are still leaving.
    pub(super) fn waits_for_victims(&self, pod: &Pod) -> bool {
        let node = pod.status.as_ref().and_then(|status| status.nominated_node_name.as_deref());
        let leaves = |other: &Pod| {
            priority(other) < priority(pod) && pods::is_terminating(other) && disrupt::is_target(other, CAUSE)
        };
        node.is_some_and(|node| self.loads.on(node).any(|resident| leaves(&resident.pod)))
    }

    /// Takes all away who may be, then lets as many stay as can: those first whom a budget keeps, then the important.
    fn plan(&self, pod: &Pod, spec: &PodSpec, node: &Node) -> Option<Preemption> {
        let name = node.name_any();
        let lower = self.loads.on(&name).filter(|resident| priority(&resident.pod) < priority(pod));
        let mut lower: Vec<&Resident> = lower.collect();
        lower.sort_by_key(|resident| {
            (Reverse(priority(&resident.pod)), started(&resident.pod), resident.pod.name_any())
        });
        let mut load = self.loads.of(&name, pod);
        lower.iter().for_each(|resident| load.remove(&resident.footprint));
        let mut away: HashSet<&str> = lower.iter().filter_map(|it| it.pod.metadata.uid.as_deref()).collect();
        let fits = |load: &Load, away: &HashSet<&str>| self.trial(pod, spec, away).refusals(node, load).is_empty();
        if lower.is_empty() || !fits(&load, &away) {
            return None;
        }
        let (kept, free) = self.by_budget(&lower);
        let (mut victims, mut violations) = (vec![], 0);
        for (resident, is_kept) in kept.into_iter().map(|it| (it, true)).chain(free.into_iter().map(|it| (it, false))) {
            let uid = resident.pod.metadata.uid.as_deref().unwrap_or_default();
            load.add(&resident.footprint);
            away.remove(uid);
            if !fits(&load, &away) {
                load.remove(&resident.footprint);
                away.insert(uid);
                victims.push(resident.pod.clone());
                violations += usize::from(is_kept);
            }
        }
        (!victims.is_empty()).then_some(Preemption { node: name, victims, violations })
    }

    /// Those whose leaving a budget does not allow, and the others.
    fn by_budget<'r>(&self, residents: &[&'r Resident]) -> (Vec<&'r Resident>, Vec<&'r Resident>) {
        let mut left: HashMap<usize, i32> = HashMap::new();
        residents.iter().partition(|resident| {
            let mut is_kept = false;
            for (number, budget) in self.budgets.iter().enumerate().filter(|(_, budget)| covers(budget, &resident.pod))
            {
                let allowed = budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0);
                let left = left.entry(number).or_insert(allowed);
                *left -= 1;
                is_kept |= *left < 0;
            }
            is_kept
        })
    }
}

fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| terms::selector(spec.selector.as_ref()));
    let disrupted = budget.status.as_ref().and_then(|status| status.disrupted_pods.as_ref());
    budget.metadata.namespace == pod.metadata.namespace
        && selector.is_some_and(|selector| selector.matches(pod.labels()))
        && !disrupted.is_some_and(|disrupted| disrupted.contains_key(&pod.name_any()))
}

/// How bad it is to lose the Pods: the most important first, then all, then how many, then how long they have run.
fn harm(victims: &[Arc<Pod>]) -> (i32, i64, usize, Reverse<Option<Timestamp>>) {
    let highest = victims.iter().map(|pod| priority(pod)).max().unwrap_or(i32::MIN);
    // From the lowest priority on, so that many of little importance count for more than few.
    let sum = victims.iter().map(|pod| i64::from(priority(pod)) - i64::from(i32::MIN)).sum();
    let oldest = victims.iter().filter(|pod| priority(pod) == highest).filter_map(|pod| started(pod)).min();
    (highest, sum, victims.len(), Reverse(oldest))
}

fn started(pod: &Pod) -> Option<Timestamp> {
    pod.status.as_ref()?.start_time.as_ref().map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::decide::Decision;
    use super::super::loads::Loads;
    use super::*;

    fn node(name: &str) -> Node {
        serde_json::from_value(
            json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}),
        )
        .unwrap()
    }

    fn pod(name: &str, priority: i32, cpu: &str, node: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": {"app": name}},
            "spec": {"priority": priority, "nodeName": node, "containers": [
                {"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}))
        .unwrap()
    }

    fn budget(app: &str) -> Arc<PodDisruptionBudget> {
        let budget = json!({"metadata": {"name": app, "namespace": "ns"},
            "spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"disruptionsAllowed": 0,
            "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
        Arc::new(serde_json::from_value(budget).unwrap())
    }

    /// Pods there as `name:priority:cpu:node`; whom `pod` drives away, as `node: names`.
    fn check(there: &str, budgets: &[Arc<PodDisruptionBudget>], pod: &Pod, expect: &str) {
        let mut loads = Loads::default();
        for text in there.split_whitespace() {
            let parts: Vec<&str> = text.split(':').collect();
            let resident = self::pod(parts[0], parts[1].parse().unwrap(), parts[2], Some(parts[3]));
            loads.place(&Arc::new(resident), parts[3]);
        }
        let nodes = [node("m"), node("n")];
        let board = Board {
            nodes: nodes.iter().collect(),
            loads: &loads,
            labels_of: &|_| BTreeMap::new(),
            budgets,
            needs: &[],
        };
        let told = match board.decide(pod) {
            Decision::Preempt { plan, .. } => {
                let names: Vec<String> = plan.victims.iter().map(|pod| pod.name_any()).collect();
                format!("{}: {}", plan.node, names.join(" "))
            }
            Decision::Bind(node) => format!("bind {node}"),
            _ => "nothing".to_owned(),
        };
        assert_eq!(told, expect, "{there}");
    }

    #[test]
    fn the_least_important_go_and_no_more_than_must() {
        let high = pod("high", 10, "3", None);
        check("a:1:1:m b:1:1:m", &[], &high, "bind n");
        check("a:1:4:m b:5:4:n", &[], &high, "m: a");
        check("a:5:2:m b:1:2:m c:9:4:n", &[], &high, "m: a b");
        check("a:5:1:m b:1:3:m c:9:4:n", &[], &high, "m: b");
        check("a:10:4:m b:11:4:n", &[], &high, "nothing");
        check("a:1:2:m b:1:2:m c:1:4:n", &[], &high, "n: c");
        check("a:1:4:m b:5:4:n", &[budget("a")], &high, "n: b");
        check("a:1:4:m b:5:4:n", &[budget("a"), budget("b")], &high, "m: a");
    }

    #[test]
    fn who_would_not_fit_on_an_empty_node_or_does_not_want_to_drives_nobody_away() {
        check("a:1:4:m b:1:4:n", &[], &pod("huge", 10, "5", None), "nothing");
        let mut polite = pod("polite", 10, "3", None);
        polite.spec.as_mut().unwrap().preemption_policy = Some("Never".to_owned());
        check("a:1:4:m b:1:4:n", &[], &polite, "nothing");
    }
}
