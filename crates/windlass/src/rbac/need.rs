//! What an operator must be allowed, each right with its reason.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::ResourceExt;
use kube::core::ApiResource;
use windlass_core::admission::Task;
use windlass_runtime::engine::{Declared, Use};
use windlass_runtime::tap::Right;
use windlass_runtime::webhook::{Registration, Webhooks};

const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";
/// The order in which verbs are written.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const READ_ONE: &str = "whoever may list them sees as much, so that code of the author may read one";
const WATCH: &str = "a cache of them is kept";

/// A right that an operator needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The right.
    pub right: Right,
    /// Where it is needed.
    pub scope: Scope,
    /// What it belongs to.
    pub part: Part,
    /// The objects that it is narrowed to; any if there are none.
    pub names: Vec<String>,
    /// What it is for.
    pub why: String,
}

/// Where a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the namespaces whose resources are served.
    Served,
    /// On kinds that live in no namespace.
    Cluster,
    /// In the operator's own namespace.
    Own,
}

/// What a right belongs to: each part has roles of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The work on resources.
    Work,
    /// To be the one of several replicas that works, or to share the work.
    Lead,
    /// To be found and trusted by the API server.
    Webhooks,
}

impl Need {
    pub(crate) fn new(right: Right, scope: Scope, why: impl Into<String>) -> Self {
        Self { right, scope, part: Part::Work, names: Vec::new(), why: why.into() }
    }

    fn of(self, part: Part, names: &[String]) -> Self {
        Self { part, names: names.to_vec(), ..self }
    }
}

/// What the permissions of a program follow from.
pub(crate) struct Basis {
    /// Its own kind.
    pub(crate) own: ApiResource,
    /// Whether that lives in namespaces.
    pub(crate) is_namespaced: bool,
    /// What it writes of its own resources: the subresource, and what for.
    pub(crate) patches: Vec<(&'static str, &'static str)>,
    /// The kinds that it uses, besides its own.
    pub(crate) declared: Vec<Declared>,
}

/// A status is written.
pub(crate) const REPORTS: (&str, &str) = ("/status", "the status is reported");
/// The metadata of resources is written.
pub(crate) const HOLDS: (&str, &str) = ("", "finalizers and progress are written");
/// There are several versions.
pub(crate) const MOVES: (&str, &str) = ("", "objects are moved to the storage version");

/// What follows from what an operator declares.
pub(crate) fn declared(basis: &Basis) -> Vec<Need> {
    let own = &basis.own;
    let scope = if basis.is_namespaced { Scope::Served } else { Scope::Cluster };
    let on = |subresource: &str, verb: &str, why: &str| {
        Need::new(Right::new(own.group.clone(), format!("{}{subresource}", own.plural), verb), scope, why)
    };
    let mut needs = vec![on("", "get", READ_ONE), on("", "list", WATCH), on("", "watch", WATCH)];
    needs.extend(basis.patches.iter().map(|(subresource, why)| on(subresource, "patch", why)));
    let blocks = "children block the deletion of their owner, which takes this on clusters that ask for it";
    needs.push(on("/finalizers", "update", blocks));
    needs.extend(events(scope));
    for declared in &basis.declared {
        let scope = if declared.namespaced { Scope::Served } else { Scope::Cluster };
        let on = |verb: &str, why: &str| {
            Need::new(Right::new(declared.resource.group.clone(), declared.resource.plural.clone(), verb), scope, why)
        };
        needs.extend([on("get", READ_ONE), on("list", WATCH), on("watch", WATCH)]);
        if declared.usage == Use::Owns {
            needs.push(on("create", "an apply that makes its object takes it"));
            needs.push(on("patch", "children are applied"));
            needs.push(on("delete", "children that are no longer wanted are removed"));
        }
    }
    needs
}

/// What an author asks for beyond that.
///
/// # Panics
/// If there is a wildcard in it.
pub(crate) fn asked(group: &str, resource: &str, verbs: &[&str], scope: Scope) -> Vec<Need> {
    let is_wild = [group, resource].iter().chain(verbs).any(|word| word.contains('*'));
    assert!(!is_wild, "name what {resource} of {group:?} may be used for: an operator has no wildcard");
    let need = |verb: &&str| Need::new(Right::new(group, resource, *verb), scope, "the author asks for it");
    verbs.iter().map(need).collect()
}

fn events(scope: Scope) -> [Need; 2] {
    let on = |verb: &str, why: &str| Need::new(Right::new("", "events", verb), scope, why);
    [on("create", "events tell what was done"), on("patch", "events that repeat are counted")]
}

/// What it takes to lead, or with `shards` to share the work, in the operator's own namespace.
pub(crate) fn lead(operator: &str, shards: bool) -> Vec<Need> {
    let on = |verb: &str, why: &str| Need::new(Right::new("coordination.k8s.io", "leases", verb), Scope::Own, why);
    let mut needs = vec![on("create", "the lease is made by the first").of(Part::Lead, &[])];
    // The leases of shards and members have names that are not known before.
    let names = if shards { Vec::new() } else { vec![operator.to_owned()] };
    let kept =
        [on("get", "the lease is read"), on("list", WATCH), on("watch", WATCH), on("update", "the lease is renewed")];
    needs.extend(kept.map(|need| need.of(Part::Lead, &names)));
    if shards {
        needs.push(on("delete", "leases of members that are gone are removed").of(Part::Lead, &[]));
    }
    needs.extend(events(Scope::Own).map(|need| need.of(Part::Lead, &[])));
    needs
}

/// What webhooks take: the one Secret with the keys, and to say whom to trust in the operator's own objects alone.
pub(crate) fn webhooks(registration: &Registration) -> Vec<Need> {
    if registration.is_empty() {
        return Vec::new();
    }
    let secret = [Webhooks::secret_name(&registration.name)];
    let keys = |verb: &str| {
        Need::new(Right::new("", "secrets", verb), Scope::Own, "the keys are in it").of(Part::Webhooks, &secret)
    };
    let mut needs = vec![keys("get"), keys("update")];
    let mut trust = |group: &str, resource: &str, verbs: &[&str], (names, why): (&[String], &str)| {
        let on = |verb: &&str| Need::new(Right::new(group, resource, *verb), Scope::Cluster, why);
        needs.extend(verbs.iter().map(on).map(|need| need.of(Part::Webhooks, names)));
    };
    let own = ([registration.name.clone()], "the API server is told whom to trust");
    for resource in configurations(registration) {
        trust(ADMISSION, resource, &["get", "patch"], (&own.0, own.1));
    }
    let names = converted(registration);
    if !names.is_empty() {
        trust(EXTENSIONS, "customresourcedefinitions", &["patch"], (&names, own.1));
    }
    needs.extend(moves(registration));
    needs
}

/// What the move to a new storage version takes, in the operator's own definitions alone.
pub(crate) fn moves(registration: &Registration) -> Vec<Need> {
    let names = converted(registration);
    let on = |resource: &str, verb: &str, why: &str| {
        Need::new(Right::new(EXTENSIONS, resource, verb), Scope::Cluster, why).of(Part::Webhooks, &names)
    };
    let needs = [
        on("customresourcedefinitions", "get", "it is known what is stored as an old version"),
        on("customresourcedefinitions/status", "patch", "an old storage version is struck off"),
    ];
    if names.is_empty() { Vec::new() } else { needs.into() }
}

/// The names of the definitions of kinds with several versions.
fn converted(registration: &Registration) -> Vec<String> {
    let converted = registration.chains.iter().filter(|chain| chain.converts());
    converted.map(|chain| chain.definition().name_any()).collect()
}

/// What webhooks take beyond that of a cluster that the operator runs outside of: its own configurations come and go with it,
/// and the definitions, which are there before it, get the way to the conversion.
pub(crate) fn visit(registration: &Registration) -> Vec<Need> {
    let on = |group: &str, resource: &str, verb: &str, why: &str| {
        Need::new(Right::new(group, resource, verb), Scope::Cluster, why)
    };
    let mut needs = Vec::new();
    for resource in configurations(registration) {
        let own = [registration.name.clone()];
        let why = "the configuration comes and goes with the process";
        needs.extend(["create", "delete"].map(|verb| on(ADMISSION, resource, verb, why).of(Part::Webhooks, &own)));
    }
    if !registration.is_empty() {
        let names: Vec<String> = registration.chains.iter().map(|chain| chain.definition().name_any()).collect();
        let verbs =
            ["get", "patch"].map(|verb| on(EXTENSIONS, "customresourcedefinitions", verb, "it serves its kinds"));
        needs.extend(verbs.map(|need| need.of(Part::Webhooks, &names)));
    }
    needs
}

/// The kinds of configurations that the hooks are in.
fn configurations(registration: &Registration) -> impl Iterator<Item = &'static str> {
    let kinds = [("mutatingwebhookconfigurations", Task::Default), ("validatingwebhookconfigurations", Task::Validate)];
    let used = kinds.map(|(resource, task)| (resource, registration.hooks.iter().any(|hook| hook.task == task)));
    used.into_iter().filter_map(|(resource, is_used)| is_used.then_some(resource))
}

/// The rules that grant `needs`: verbs of a resource together, then resources with the same verbs.
pub(crate) fn rules<'a>(needs: impl IntoIterator<Item = &'a Need>) -> Vec<PolicyRule> {
    let mut resources: Vec<PolicyRule> = Vec::new();
    for need in needs {
        let (group, resource) = (vec![need.right.group.clone()], vec![need.right.resource.clone()]);
        let names = (!need.names.is_empty()).then(|| need.names.clone());
        let rule = PolicyRule {
            api_groups: Some(group),
            resources: Some(resource),
            resource_names: names,
            ..PolicyRule::default()
        };
        let is_same = |known: &&mut PolicyRule| {
            (&known.api_groups, &known.resources, &known.resource_names)
                == (&rule.api_groups, &rule.resources, &rule.resource_names)
        };
        match resources.iter_mut().find(is_same) {
            Some(known) => known.verbs.push(need.right.verb.clone()),
            None => resources.push(PolicyRule { verbs: vec![need.right.verb.clone()], ..rule }),
        }
    }
    merge(resources)
}

/// Rules with the same group, verbs and names become one.
fn merge(rules: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut merged: Vec<PolicyRule> = Vec::new();
    for mut rule in rules {
        rule.verbs
            .sort_by_key(|verb| (VERBS.iter().position(|known| known == verb).unwrap_or(VERBS.len()), verb.clone()));
        rule.verbs.dedup();
        let is_same = |known: &&mut PolicyRule| {
            (&known.api_groups, &known.verbs, &known.resource_names)
                == (&rule.api_groups, &rule.verbs, &rule.resource_names)
        };
        match merged.iter_mut().find(is_same).and_then(|known| known.resources.as_mut()) {
            Some(resources) => {
                resources.extend(rule.resources.take().into_iter().flatten());
                resources.sort();
            }
            None => merged.push(rule),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(needs: &[(&str, &str, &str, &[&str])], expected: &[&str]) {
        let need = |(group, resource, verb, names): &(&str, &str, &str, &[&str])| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Need::new(Right::new(*group, *resource, *verb), Scope::Served, "").of(Part::Work, &names)
        };
        let needs: Vec<Need> = needs.iter().map(need).collect();
        let text = |rule: &PolicyRule| {
            let join = |words: &Option<Vec<String>>| words.clone().unwrap_or_default().join(",");
            let names = join(&rule.resource_names);
            format!("{} {} {} {names}", join(&rule.api_groups), join(&rule.resources), rule.verbs.join(","))
        };
        assert_eq!(rules(&needs).iter().map(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn rules_are_as_few_as_they_can_be_without_granting_more() {
        check(
            &[
                ("apps", "deployments", "patch", &[]),
                ("apps", "deployments", "get", &[]),
                ("", "services", "get", &[]),
                ("apps", "replicasets", "get", &[]),
                ("apps", "replicasets", "patch", &[]),
                ("apps", "deployments", "get", &[]),
            ],
            &["apps deployments,replicasets get,patch ", " services get "],
        );
        check(
            &[("", "secrets", "get", &["keys"]), ("", "secrets", "list", &[]), ("", "secrets", "update", &["keys"])],
            &[" secrets get,update keys", " secrets list "],
        );
    }
}
