//! The metadata of every object.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cursor::{At, immutable, named};
use crate::{FieldError, Kind, names};

/// How many bytes the annotations of an object may have together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// What holds an object while its dependents are orphaned or deleted, and what holds a namespace.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
const CONTENT: &str = "kubernetes";

/// Checks the metadata of an object of any kind: name, namespace, labels, annotations, owners, finalizers.
///
/// On an update, the name and the namespace are those of the `old` object.
pub fn validate_metadata(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = At::root(object).member("metadata");
    match old.map(|old| At::root(old).member("metadata")) {
        None => {
            name(kind, &metadata, &mut errors);
            namespace(kind, &metadata.member("namespace"), &mut errors);
        }
        Some(old) => {
            no_new_finalizers(&metadata, &old, &mut errors);
            immutable(&metadata, &old, &["name", "namespace"], &mut errors);
        }
    }
    labels(&metadata.member("labels"), &mut errors);
    annotations(&metadata.member("annotations"), &mut errors);
    owners(&metadata.member("ownerReferences"), &mut errors);
    finalizers(kind, &metadata.member("finalizers"), &mut errors);
    errors
}

/// An object on its way out gets no new finalizers.
fn no_new_finalizers(metadata: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if old.member("deletionTimestamp").is_absent() {
        return;
    }
    let known: Vec<&str> = old.member("finalizers").items().map(|finalizer| finalizer.text()).collect();
    let finalizers = metadata.member("finalizers");
    let added = finalizers.items().map(|finalizer| finalizer.text()).filter(|name| !known.contains(name));
    let added: BTreeSet<String> = added.map(crate::field::quote).collect();
    if !added.is_empty() {
        let added = added.into_iter().collect::<Vec<_>>().join(", ");
        errors.push(finalizers.forbidden(format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{added}}}"
        )));
    }
}

fn finalizers(kind: &Kind, finalizers: &At<'_>, errors: &mut Vec<FieldError>) {
    for finalizer in finalizers.items() {
        let wrong = names::qualified(finalizer.text()).into_iter().map(|detail| finalizer.invalid(detail));
        errors.extend(wrong.map(|error| FieldError { path: finalizers.path.clone(), ..error }));
    }
    let has = |name: &str| finalizers.items().any(|finalizer| finalizer.text() == name);
    if has(ORPHAN) && has(FOREGROUND) {
        errors.push(finalizers.invalid(format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set")));
    }
    if !has_qualified_finalizers(kind) {
        return;
    }
    for finalizer in finalizers.items() {
        if !finalizer.text().contains('/') && ![ORPHAN, FOREGROUND, CONTENT].contains(&finalizer.text()) {
            errors.push(finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified"));
        }
    }
}

/// Most built-in kinds want the finalizers of others to say whose they are.
fn has_qualified_finalizers(kind: &Kind) -> bool {
    const LAX: [&str; 4] =
        ["admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "coordination.k8s.io"];
    kind.is_builtin() && !LAX.contains(&kind.group.as_str()) && kind.kind != "Event"
}

fn name(kind: &Kind, metadata: &At<'_>, errors: &mut Vec<FieldError>) {
    let rule = name_rule(kind);
    let generate_name = metadata.member("generateName");
    if let Some(prefix) = Some(generate_name.text()).filter(|prefix| !prefix.is_empty()) {
        // What is generated after the prefix ends as a name may end.
        let probe = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |prefix| format!("{prefix}a"));
        errors.extend(rule(&probe).into_iter().map(|detail| generate_name.invalid(detail)));
    }
    let name = metadata.member("name");
    if name.is_absent() {
        errors.push(name.missing("name or generateName is required"));
    }
    named(&name, rule, errors);
}

fn name_rule(kind: &Kind) -> fn(&str) -> Vec<String> {
    if !kind.is_builtin() {
        return names::subdomain;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => names::label,
        // Nobody looks at what else is in the names of budgets; those of definitions are made of what they define.
        ("policy", "PodDisruptionBudget") | ("apiextensions.k8s.io", _) => names::path_segment,
        ("", "Event") | ("rbac.authorization.k8s.io", _) => names::path_segment,
        ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle") => names::path_segment,
        ("networking.k8s.io", "IPAddress") => names::path_segment,
        ("apiregistration.k8s.io", "APIService") => names::path_segment,
        _ => names::subdomain,
    }
}

fn namespace(kind: &Kind, namespace: &At<'_>, errors: &mut Vec<FieldError>) {
    match (kind.namespaced, namespace.is_absent()) {
        (true, true) => errors.push(namespace.missing("")),
        (true, false) => named(namespace, names::label, errors),
        (false, false) => errors.push(namespace.forbidden("not allowed on this type")),
        (false, true) => {}
    }
}

/// Checks keys and values of labels.
pub(super) fn labels(labels: &At<'_>, errors: &mut Vec<FieldError>) {
    for (key, value) in labels.entries() {
        let wrong_key = names::qualified(key).into_iter().map(|detail| (key, detail));
        let wrong_value = names::label_value(value.text()).into_iter().map(|detail| (value.text(), detail));
        let wrong = wrong_key.chain(wrong_value);
        errors.extend(wrong.map(|(value, detail)| FieldError::invalid(labels.path.clone(), value, detail)));
    }
}

/// Checks keys of annotations, and how much they say together.
pub(super) fn annotations(annotations: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations.entries() {
        bytes += key.len() + value.text().len();
        let wrong = names::qualified(&key.to_lowercase()).into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(annotations.path.clone(), key, detail)));
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long(annotations.path.clone(), ANNOTATION_BYTES_MAX as u64));
    }
}

fn owners(owners: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let members = [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ];
        for (name, detail) in members {
            if owner.member(name).is_absent() {
                errors.push(FieldError::invalid(format!("{}.{name}", owners.path), "", detail));
            }
        }
        if owner.member("apiVersion").text() == "v1" && owner.member("kind").text() == "Event" {
            errors.push(FieldError::invalid(
                owners.path.clone(),
                owner.value.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.member("controller").is_true() {
            let this = format!("{}/{}", owner.member("kind").text(), owner.member("name").text());
            if let Some(first) = &controller {
                errors.push(owners.invalid(format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                )));
            }
            controller.get_or_insert(this);
        }
    }
}
