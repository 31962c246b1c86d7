//! Roles and their bindings.

use serde_json::json;

use super::cursor::{At, named, one_of, required};
use super::selector;
use crate::{FieldError, names};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(role: &At<'_>, is_namespaced: bool, errors: &mut Vec<FieldError>) {
    let aggregation = role.member("aggregationRule");
    if aggregation.is_set() {
        let selectors = aggregation.member("clusterRoleSelectors");
        if selectors.is_absent() {
            errors.push(selectors.missing("at least one clusterRoleSelector required if aggregationRule is non-nil"));
        }
        selectors.items().for_each(|selector| selector::check(&selector, errors));
    }
    for rule in role.member("rules").items() {
        let member = |name: &str| rule.member(name);
        let (groups, resources, urls) = (member("apiGroups"), member("resources"), member("nonResourceURLs"));
        if member("verbs").is_absent() {
            errors.push(member("verbs").missing("verbs must contain at least one value"));
        }
        if !urls.is_absent() {
            if is_namespaced {
                errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !(groups.is_absent() && resources.is_absent() && member("resourceNames").is_absent()) {
                errors.push(urls.invalid("rules cannot apply to both regular resources and non-resource URLs"));
            }
            continue;
        }
        if groups.is_absent() {
            errors.push(groups.missing("resource rules must supply at least one api group"));
        }
        if resources.is_absent() {
            errors.push(resources.missing("resource rules must supply at least one resource"));
        }
    }
}

pub(super) fn binding(binding: &At<'_>, old: Option<&At<'_>>, is_namespaced: bool, errors: &mut Vec<FieldError>) {
    let reference = binding.member("roleRef");
    one_of(&reference.member("apiGroup"), &[GROUP], errors);
    let kinds: &[&str] = if is_namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = reference.member("kind");
    if !kinds.contains(&kind.text()) {
        errors.push(FieldError::not_supported(kind.path.clone(), kind.text(), kinds));
    }
    let name = reference.member("name");
    required(&name, errors);
    errors.extend(names::path_segment(name.text()).into_iter().map(|detail| name.invalid(detail)));
    for subject in binding.member("subjects").items() {
        check_subject(&subject, is_namespaced, errors);
    }
    if old.is_some_and(|old| old.member("roleRef").value != reference.value) {
        // Kubernetes shows the reference with the names that it has inside of the server.
        let text = |name: &str| reference.member(name).text();
        let shown = json!({ "APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name") });
        errors.push(FieldError::invalid(reference.path.clone(), shown, "cannot change roleRef"));
    }
}

fn check_subject(subject: &At<'_>, is_namespaced: bool, errors: &mut Vec<FieldError>) {
    let name = subject.member("name");
    required(&name, errors);
    let (kind, group) = (subject.member("kind"), subject.member("apiGroup"));
    match kind.text() {
        "ServiceAccount" => {
            named(&name, names::subdomain, errors);
            let namespace = subject.member("namespace");
            if !is_namespaced && namespace.is_absent() {
                errors.push(namespace.missing(""));
            }
            one_of(&group, &[""], errors);
        }
        "User" | "Group" if group.text() != GROUP => {
            errors.push(FieldError::not_supported(group.path.clone(), group.text(), &[GROUP]));
        }
        "User" | "Group" => {}
        other => errors.push(FieldError::not_supported(kind.path, other, &["ServiceAccount", "User", "Group"])),
    }
}
