//! Which definitions are accepted.

use serde_json::Value;
use windlass_schema::FieldError;

use super::{
    definition::{Conversion, Definition, Names, Spec},
    validate_version::{self, Places},
};
use crate::webhook::check_bundle;

/// Groups of Kubernetes itself; definitions in them need an approval.
const PROTECTED_GROUPS: [&str; 2] = ["k8s.io", "kubernetes.io"];
const APPROVAL: &str = "api-approved.kubernetes.io";

/// What is wrong with a new definition.
pub(crate) fn create(object: &Value) -> Vec<FieldError> {
    let definition = match Definition::read(object) {
        Ok(definition) => definition,
        Err(error) => return vec![FieldError::invalid("spec", Value::Null, error.to_string())],
    };
    let mut errors = common(&definition, object, None);
    errors.splice(0..0, wrong_names(&definition));
    errors.extend(approval(&definition));
    errors
}

/// A definition is called by what it defines, and so is what its name would be made of.
fn wrong_names(definition: &Definition) -> Vec<FieldError> {
    let wanted = format!("{}.{}", definition.spec.names.plural, definition.spec.group);
    let (name, generate_name) = (&definition.metadata.name, &definition.metadata.generate_name);
    let given = [("generateName", generate_name), ("name", name)];
    let wrong = given.into_iter().filter(|(_, text)| **text != wanted && !text.is_empty());
    let detail = "must be spec.names.plural+\".\"+spec.group";
    wrong.map(|(field, text)| FieldError::invalid(format!("metadata.{field}"), text.as_str(), detail)).collect()
}

/// What is wrong with a changed definition.
pub(crate) fn update(object: &Value, old: &Value) -> Vec<FieldError> {
    let (Ok(definition), Ok(old)) = (Definition::read(object), Definition::read(old)) else { return create(object) };
    let mut errors = common(&definition, object, Some(&old));
    let mut fixed = |path: &str, new: &str, old: &str| {
        if new != old {
            errors.push(FieldError::invalid(path, new, "field is immutable"));
        }
    };
    if old.is("Established") {
        fixed("spec.scope", &definition.spec.scope, &old.spec.scope);
        fixed("spec.names.kind", &definition.spec.names.kind, &old.spec.names.kind);
    }
    fixed("spec.group", &definition.spec.group, &old.spec.group);
    fixed("spec.names.plural", &definition.spec.names.plural, &old.spec.names.plural);
    errors
}

fn common(definition: &Definition, object: &Value, old: Option<&Definition>) -> Vec<FieldError> {
    let spec = &definition.spec;
    let mut errors = group(spec);
    match spec.scope.as_str() {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    if spec.preserve_unknown_fields {
        let detail = "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, detail));
    }
    errors.extend(versions(spec, object, old));
    errors.extend(required_names(&spec.names));
    errors.extend(names(&spec.names, "spec.names"));
    errors.extend(spec.conversion.as_ref().map(conversion).unwrap_or_default());
    errors.extend(stored_versions(definition));
    errors
}

fn group(spec: &Spec) -> Vec<FieldError> {
    let group = spec.group.as_str();
    let problems = windlass_schema::names::subdomain(group);
    let problem = match group {
        "" => return vec![FieldError::required("spec.group", "")],
        _ if !problems.is_empty() => problems.join(","),
        group if !group.contains('.') => "should be a domain with at least one dot".to_owned(),
        _ => return Vec::new(),
    };
    vec![FieldError::invalid("spec.group", group, problem)]
}

fn versions(spec: &Spec, object: &Value, old: Option<&Definition>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let raw = object.pointer("/spec/versions").cloned().unwrap_or_default();
    for (index, version) in spec.versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        if let Some(problem) = label_problem(&version.name) {
            errors.push(FieldError::invalid(format!("{path}.name"), version.name.clone(), problem));
        }
        let known = old.and_then(|old| old.spec.versions.iter().find(|known| known.name == version.name));
        errors.extend(validate_version::run(version, known, &Places::of(&raw, index)));
    }
    let mut seen: Vec<&str> = spec.versions.iter().map(|version| version.name.as_str()).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        errors.push(FieldError::invalid("spec.versions", raw.clone(), "must contain unique version names"));
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", raw, detail));
    }
    errors
}

fn required_names(names: &Names) -> Vec<FieldError> {
    let required = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    let missing = required.into_iter().filter(|(_, name)| name.is_empty());
    missing.map(|(member, _)| FieldError::required(format!("spec.names.{member}"), "")).collect()
}

/// What is wrong with names that are given.
fn names(names: &Names, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut check = |member: String, name: &str, mixed_case: bool| {
        let checked = if mixed_case { name.to_lowercase() } else { name.to_owned() };
        let Some(problem) = label_problem(&checked).filter(|_| !name.is_empty()) else { return };
        let detail =
            if mixed_case { format!("may have mixed case, but should otherwise match: {problem}") } else { problem };
        errors.push(FieldError::invalid(format!("{path}.{member}"), name, detail));
    };
    check("plural".into(), &names.plural, false);
    check("singular".into(), &names.singular, false);
    check("kind".into(), &names.kind, true);
    check("listKind".into(), &names.list_kind, true);
    for (index, name) in names.short_names.iter().enumerate() {
        check(format!("shortNames[{index}]"), name, false);
    }
    for (index, name) in names.categories.iter().enumerate() {
        check(format!("categories[{index}]"), name, false);
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{path}.listKind"), names.list_kind.clone(), detail));
    }
    errors
}

fn conversion(conversion: &Conversion) -> Vec<FieldError> {
    match (conversion.strategy.as_str(), &conversion.webhook) {
        ("", _) => vec![FieldError::required("spec.conversion.strategy", "")],
        ("None", None) => Vec::new(),
        ("None", Some(_)) => {
            let detail = "should not be set when strategy is not set to Webhook";
            vec![FieldError::forbidden("spec.conversion.webhookClientConfig", detail)]
        }
        ("Webhook", webhook) => webhook_conversion(webhook.as_ref()),
        (other, _) => vec![FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"])],
    }
}

fn webhook_conversion(webhook: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let client = webhook.and_then(|webhook| webhook.get("clientConfig"));
    let path = "spec.conversion.webhookClientConfig";
    match client {
        None => errors.push(FieldError::required(path, "required when strategy is set to Webhook")),
        Some(client) => errors.extend(windlass_schema::validate_webhook_client(path, client)),
    }
    let bundle = client.and_then(|client| client.get("caBundle")).and_then(Value::as_str);
    if let Some(Err(error)) = bundle.map(check_bundle) {
        errors.push(FieldError::invalid(format!("{path}.caBundle"), bundle.unwrap_or_default(), error.to_string()));
    }
    let review_versions = webhook.and_then(|webhook| webhook.get("conversionReviewVersions")).and_then(Value::as_array);
    let path = "spec.conversion.conversionReviewVersions";
    match review_versions.map(Vec::as_slice).unwrap_or_default() {
        [] => errors.push(FieldError::required(path, "")),
        versions if !versions.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1"))) => {
            errors.push(FieldError::invalid(path, versions.to_vec(), "must include at least one of v1, v1beta1"));
        }
        _ => {}
    }
    errors
}

fn stored_versions(definition: &Definition) -> Vec<FieldError> {
    let path = "status.storedVersions";
    let stored = &definition.status.stored_versions;
    if stored.is_empty() {
        return vec![FieldError::invalid(path, Value::Array(Vec::new()), "must have at least one stored version")];
    }
    let mut errors = Vec::new();
    if let Some(name) = definition.storage_version().filter(|name| !stored.iter().any(|stored| stored == name)) {
        errors.push(FieldError::invalid(path, stored.clone(), format!("must have the storage version {name}")));
    }
    for (index, name) in stored.iter().enumerate() {
        if !definition.spec.versions.iter().any(|version| version.name == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
                 a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{path}[{index}]"), name.clone(), detail));
        }
    }
    errors
}

fn approval(definition: &Definition) -> Option<FieldError> {
    let group = definition.spec.group.as_str();
    let protected = PROTECTED_GROUPS.iter().any(|own| group == *own || group.ends_with(&format!(".{own}")));
    let approved = definition.metadata.annotations.get(APPROVAL);
    let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111";
    (protected && approved.is_none_or(String::is_empty))
        .then(|| FieldError::required("metadata.annotations[api-approved.kubernetes.io]", detail))
}

fn label_problem(name: &str) -> Option<String> {
    let problems = windlass_schema::names::label_1035(name);
    (!problems.is_empty()).then(|| problems.join(","))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
