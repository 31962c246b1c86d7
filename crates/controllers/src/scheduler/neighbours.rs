//! Whom a Pod wants beside it, and who wants it not.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, Pod, PodAffinityTerm, PodSpec, WeightedPodAffinityTerm};
use kube::ResourceExt;

use super::terms::{NamespaceLabels, Term};

/// Why a node is wrong for its Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clash {
    /// Nobody is there whom the Pod needs; taking Pods away does not help.
    Missing,
    /// Somebody is there whom the Pod does not want.
    Unwanted,
    /// Somebody is there who does not want the Pod.
    NotWelcome,
}

impl Clash {
    /// The reason as people know it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Missing => "node(s) didn't match pod affinity rules",
            Self::Unwanted => "node(s) didn't match pod anti-affinity rules",
            Self::NotWelcome => "node(s) didn't satisfy existing pods anti-affinity rules",
        }
    }
}

/// How many Pods a term means, by the value of its key.
type Counts = HashMap<String, usize>;

/// What the Pods on all nodes mean for one that is to be placed.
pub(crate) struct Neighbours<'a> {
    needed: Vec<(Term<'a>, Counts)>,
    /// Whether the Pod itself is all that it needs.
    needs_only_itself: bool,
    unwanted: Vec<(Term<'a>, Counts)>,
    /// Keys and values where somebody does not want it.
    hostile: Vec<(String, String)>,
    /// Points for keys and values.
    preferred: Vec<(i64, Term<'a>, Counts)>,
}

impl<'a> Neighbours<'a> {
    /// Looks at all Pods that have a place; `node` gives the node of that name.
    pub(crate) fn of<'b>(
        pod: &'a Pod,
        residents: impl Iterator<Item = (&'b str, &'b Pod)> + Clone,
        node: impl Fn(&str) -> Option<&'b Node>,
        labels_of: NamespaceLabels<'_>,
    ) -> Self {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let count = |term: &Term<'_>| {
            let mut counts = Counts::new();
            for (name, resident) in residents.clone() {
                let Some(value) = node(name).and_then(|node| node.labels().get(term.key)) else { continue };
                if term.matches(resident, labels_of) {
                    *counts.entry(value.clone()).or_default() += 1;
                }
            }
            counts
        };
        let counted = |terms: &'a [PodAffinityTerm]| -> Vec<(Term<'a>, Counts)> {
            let terms = terms.iter().map(|term| Term::new(term, namespace));
            terms
                .map(|term| {
                    let counts = count(&term);
                    (term, counts)
                })
                .collect()
        };
        let weighed = |terms: &'a [WeightedPodAffinityTerm], sign: i64| {
            let terms =
                terms.iter().map(|it| (sign * i64::from(it.weight), Term::new(&it.pod_affinity_term, namespace)));
            terms
                .map(|(weight, term)| {
                    let counts = count(&term);
                    (weight, term, counts)
                })
                .collect::<Vec<_>>()
        };
        let spec = pod.spec.as_ref();
        let needed = counted(required(spec));
        let needs_only_itself = needed.iter().all(|(term, counts)| counts.is_empty() && term.matches(pod, labels_of));
        let mut preferred = weighed(preferred(spec), 1);
        preferred.extend(weighed(disliked(spec), -1));
        Self {
            needs_only_itself,
            needed,
            unwanted: counted(refused(spec)),
            hostile: hostile(pod, residents.clone(), &node, labels_of),
            preferred,
        }
    }

    /// Why the node is wrong, if it is.
    pub(crate) fn clash(&self, node: &Node) -> Option<Clash> {
        let labels = node.labels();
        let is_there = |(term, counts): &(Term<'_>, Counts)| match labels.get(term.key) {
            Some(value) => self.needs_only_itself || counts.contains_key(value),
            None => false,
        };
        if !self.needed.iter().all(is_there) {
            return Some(Clash::Missing);
        }
        let is_unwanted =
            |(term, counts): &(Term<'_>, Counts)| labels.get(term.key).is_some_and(|value| counts.contains_key(value));
        if self.unwanted.iter().any(is_unwanted) {
            return Some(Clash::Unwanted);
        }
        self.hostile.iter().any(|(key, value)| labels.get(key) == Some(value)).then_some(Clash::NotWelcome)
    }

    /// How much the Pod would like the node for its Pods.
    pub(crate) fn liking(&self, node: &Node) -> i64 {
        let points = |(weight, term, counts): &(i64, Term<'_>, Counts)| {
            let count = node.labels().get(term.key).and_then(|value| counts.get(value)).copied().unwrap_or(0);
            weight * i64::try_from(count).unwrap_or(i64::MAX)
        };
        self.preferred.iter().map(points).sum()
    }
}

/// Whether the Pod says whom it needs or does not want, so that its neighbours matter.
pub(crate) fn is_choosy(pod: &Pod) -> bool {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    affinity.is_some_and(|affinity| affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some())
}

fn hostile<'b>(
    pod: &Pod,
    residents: impl Iterator<Item = (&'b str, &'b Pod)>,
    node: impl Fn(&str) -> Option<&'b Node>,
    labels_of: NamespaceLabels<'_>,
) -> Vec<(String, String)> {
    let mut places = vec![];
    for (name, resident) in residents {
        for term in refused(resident.spec.as_ref()) {
            let term = Term::new(term, resident.metadata.namespace.as_deref().unwrap_or_default());
            let value = node(name).and_then(|node| node.labels().get(term.key));
            if let Some(value) = value.filter(|_| term.matches(pod, labels_of)) {
                places.push((term.key.to_owned(), value.clone()));
            }
        }
    }
    places
}

fn required(spec: Option<&PodSpec>) -> &[PodAffinityTerm] {
    let affinity = spec.and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref());
    affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn refused(spec: Option<&PodSpec>) -> &[PodAffinityTerm] {
    let affinity = spec.and_then(|spec| spec.affinity.as_ref()?.pod_anti_affinity.as_ref());
    affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn preferred(spec: Option<&PodSpec>) -> &[WeightedPodAffinityTerm] {
    let affinity = spec.and_then(|spec| spec.affinity.as_ref()?.pod_affinity.as_ref());
    affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn disliked(spec: Option<&PodSpec>) -> &[WeightedPodAffinityTerm] {
    let affinity = spec.and_then(|spec| spec.affinity.as_ref()?.pod_anti_affinity.as_ref());
    affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(app: &str, affinity: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": app, "namespace": "ns", "labels": {"app": app}},
            "spec": {"containers": [], "affinity": affinity}}))
        .unwrap()
    }

    fn term(app: &str) -> Value {
        json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}})
    }

    fn needs(app: &str) -> Value {
        json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}})
    }

    fn avoids(app: &str) -> Value {
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(app)]}})
    }

    /// Nodes `a` and `b` are zones of their own; `residents` are on `a`.
    fn check(pod: &Pod, residents: &[Pod], expect: [Option<Clash>; 2]) {
        let nodes: Vec<Node> = ["a", "b"]
            .iter()
            .map(|name| serde_json::from_value(json!({"metadata": {"name": name, "labels": {"zone": name}}})).unwrap())
            .collect();
        let find = |name: &str| nodes.iter().find(|node| node.name_any() == name);
        let placed = residents.iter().map(|resident| ("a", resident));
        let neighbours = Neighbours::of(pod, placed, find, &|_| BTreeMap::new());
        assert_eq!([&nodes[0], &nodes[1]].map(|node| neighbours.clash(node)), expect);
    }

    use std::collections::BTreeMap;

    #[test]
    fn pods_choose_their_neighbours() {
        let (plain, db) = (|| pod("web", json!(null)), || pod("db", json!(null)));
        check(&plain(), &[db()], [None, None]);
        check(&pod("web", needs("db")), &[db()], [None, Some(Clash::Missing)]);
        check(&pod("web", needs("db")), &[], [Some(Clash::Missing), Some(Clash::Missing)]);
        check(&pod("web", needs("web")), &[], [None, None]);
        check(&pod("web", needs("web")), &[plain()], [None, Some(Clash::Missing)]);
        check(&pod("web", avoids("db")), &[db()], [Some(Clash::Unwanted), None]);
        check(&db(), &[pod("web", avoids("db"))], [Some(Clash::NotWelcome), None]);
    }
}
