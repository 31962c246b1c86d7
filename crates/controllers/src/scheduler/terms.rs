//! Labels of Pods against the selectors of other Pods: what affinity and spreading have in common.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

/// The labels of a namespace, by its name.
pub(crate) type NamespaceLabels<'a> = &'a dyn Fn(&str) -> BTreeMap<String, String>;

/// A term of the affinity of a Pod, ready to be asked.
pub(crate) struct Term<'a> {
    /// The label of nodes that makes them neighbours.
    pub(crate) key: &'a str,
    selector: Option<Selector>,
    namespaces: Vec<&'a str>,
    namespace_selector: Option<Selector>,
}

impl<'a> Term<'a> {
    /// The term of a Pod in `namespace`; without any namespace of its own, it means that one.
    pub(crate) fn new(term: &'a PodAffinityTerm, namespace: &'a str) -> Self {
        let mut namespaces: Vec<&str> = term.namespaces.iter().flatten().map(String::as_str).collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace);
        }
        Self {
            key: &term.topology_key,
            selector: selector(term.label_selector.as_ref()),
            namespaces,
            namespace_selector: term.namespace_selector.as_ref().and_then(|it| selector(Some(it))),
        }
    }

    /// Whether the term means that Pod.
    pub(crate) fn matches(&self, pod: &Pod, labels_of: NamespaceLabels<'_>) -> bool {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let selector = || self.selector.as_ref().is_some_and(|selector| selector.matches(pod.labels()));
        let by_label = || self.namespace_selector.as_ref().is_some_and(|it| it.matches(&labels_of(namespace)));
        (self.namespaces.contains(&namespace) || by_label()) && selector()
    }
}

/// A selector that can be asked; an absent one means no Pod.
pub(crate) fn selector(selector: Option<&LabelSelector>) -> Option<Selector> {
    Selector::try_from(selector?.clone()).ok()
}
