//! Permissions: derived from what an operator declares.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::ResourceExt;
use kube::core::ApiResource;
use windlass_core::admission::Task;
use windlass_runtime::engine::{Declared, Use};
use windlass_runtime::webhook::Registration;

const READ: [&str; 3] = ["get", "list", "watch"];
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// What the permissions of a program follow from.
pub(crate) struct Needs {
    /// Its kind.
    pub(crate) own: ApiResource,
    /// Whether it patches resources themselves: finalizers, or what is moved to another storage version.
    pub(crate) patches: bool,
    /// Whether it writes the status of resources.
    pub(crate) reports: bool,
    /// The kinds that it uses, besides its own.
    pub(crate) declared: Vec<Declared>,
}

/// What the operator must be allowed where its resources are.
pub(crate) fn rules(needs: &Needs, more: &[PolicyRule]) -> Vec<PolicyRule> {
    let own = &needs.own;
    let own_verbs: &[&str] = if needs.patches { &["get", "list", "watch", "patch"] } else { &READ };
    let mut rules = vec![rule(&own.group, &own.plural, own_verbs)];
    if needs.reports {
        rules.push(rule(&own.group, &format!("{}/status", own.plural), &["patch"]));
    }
    rules.extend([
        // Children block the deletion of their owner, which takes this permission on clusters that ask for it.
        rule(&own.group, &format!("{}/finalizers", own.plural), &["update"]),
        rule("", "events", &["create", "patch"]),
    ]);
    for declared in &needs.declared {
        let verbs: &[&str] = match declared.usage {
            Use::Owns => &["get", "list", "watch", "create", "patch", "delete"],
            Use::Reads => &READ,
        };
        rules.push(rule(&declared.resource.group, &declared.resource.plural, verbs));
    }
    rules.extend(more.iter().cloned());
    merge(rules)
}

/// What leader election and shards take, in the operator's own namespace.
pub(crate) fn leader_rules() -> Vec<PolicyRule> {
    let verbs = ["get", "list", "watch", "create", "update", "delete"];
    vec![rule("coordination.k8s.io", "leases", &verbs), rule("", "events", &["create", "patch"])]
}

/// What webhooks take in the operator's own namespace: its one Secret.
pub(crate) fn secret_rules(secret: &str) -> Vec<PolicyRule> {
    vec![named(rule("", "secrets", &["get", "update"]), vec![secret.into()])]
}

/// What webhooks take of the cluster: to say whom to trust, in the operator's own objects alone.
pub(crate) fn trust_rules(registration: &Registration) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for (resource, task) in
        [("mutatingwebhookconfigurations", Task::Default), ("validatingwebhookconfigurations", Task::Validate)]
    {
        if registration.hooks.iter().any(|hook| hook.task == task) {
            rules.push(named(rule(ADMISSION, resource, &["get", "patch"]), vec![registration.name.clone()]));
        }
    }
    let converted = registration.chains.iter().filter(|chain| chain.converts());
    let names: Vec<String> = converted.map(|chain| chain.definition().name_any()).collect();
    if !names.is_empty() {
        rules.push(named(rule(EXTENSIONS, "customresourcedefinitions", &["get", "patch"]), names.clone()));
        rules.push(named(rule(EXTENSIONS, "customresourcedefinitions/status", &["patch"]), names));
    }
    rules
}

/// What webhooks take of a cluster that the operator runs outside of: its own configurations come and go with it, and the
/// definitions, which are there before it, get the way to the conversion.
pub(crate) fn visitor_rules(registration: &Registration) -> Vec<PolicyRule> {
    let mut rules = Vec::new();
    for (resource, task) in
        [("mutatingwebhookconfigurations", Task::Default), ("validatingwebhookconfigurations", Task::Validate)]
    {
        if registration.hooks.iter().any(|hook| hook.task == task) {
            let verbs = ["get", "create", "patch", "delete"];
            rules.push(named(rule(ADMISSION, resource, &verbs), vec![registration.name.clone()]));
        }
    }
    let names = registration.chains.iter().map(|chain| chain.definition().name_any()).collect();
    rules.push(named(rule(EXTENSIONS, "customresourcedefinitions", &["get", "patch"]), names));
    rules
}

fn named(rule: PolicyRule, names: Vec<String>) -> PolicyRule {
    PolicyRule { resource_names: Some(names), ..rule }
}

pub(crate) fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

/// Rules with the same group and verbs become one.
pub(crate) fn merge(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut merged: Vec<PolicyRule> = Vec::new();
    for mut rule in rules {
        let same = merged.iter_mut().find(|known| known.api_groups == rule.api_groups && known.verbs == rule.verbs);
        match same.and_then(|known| known.resources.as_mut()) {
            Some(resources) => {
                resources.extend(rule.resources.take().into_iter().flatten());
                resources.sort();
                resources.dedup();
            }
            None => merged.push(rule),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_one_group_with_the_same_verbs_are_one() {
        let merged = merge(vec![
            rule("apps", "deployments", &["get"]),
            rule("", "services", &["get"]),
            rule("apps", "replicasets", &["get"]),
            rule("apps", "deployments", &["get"]),
            rule("apps", "deployments", &["patch"]),
        ]);
        let text: Vec<_> = (merged.iter())
            .map(|rule| format!("{:?} {:?}", rule.resources.clone().unwrap_or_default(), rule.verbs))
            .collect();
        assert_eq!(
            text,
            [r#"["deployments", "replicasets"] ["get"]"#, r#"["services"] ["get"]"#, r#"["deployments"] ["patch"]"#]
        );
    }
}
