//! Claims and storage classes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::cursor::{At, follows, immutable, named, one_of, required, set_one_of};
use super::selector;
use crate::{FieldError, names, quantity};

const ALONE: &str = "ReadWriteOncePod";
const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", ALONE];
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 << 10;

pub(super) fn claim(claim: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = claim.member("spec");
    claim_spec(&spec, errors);
    let storage = spec.at("resources.requests.storage");
    let Some(old) = old else { return };
    let old_spec = old.member("spec");
    let is_bound = claim.at("status.phase").text() == "Bound";
    if frozen(spec.value, is_bound) != frozen_after_binding(old_spec.value, spec.value, is_bound) {
        errors.push(spec.forbidden(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ));
    }
    let amount = |at: At<'_>| quantity::nanos(at.text());
    let shrinks = amount(storage.clone()) < amount(old_spec.at("resources.requests.storage"));
    // An expansion that failed may be taken back, but not below what there is.
    if shrinks && amount(storage.clone()) <= amount(old.at("status.capacity.storage")) {
        errors.push(storage.forbidden("field can not be less than status.capacity"));
    }
    let mode = spec.member("volumeMode").value;
    if mode != old_spec.member("volumeMode").value {
        errors.push(FieldError::invalid("volumeMode", mode.clone(), "field is immutable"));
    }
}

/// Checks what a claim asks for, in a claim or in a template of one.
pub(super) fn claim_spec(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    selector::check(&spec.member("selector"), errors);
    access_modes(spec, "at least 1 access mode is required", errors);
    let storage = spec.at("resources.requests.storage");
    let shown = crate::field::key(&spec.member("resources").path, "storage");
    if storage.is_absent() {
        errors.push(FieldError::required(shown, ""));
    } else if quantity::nanos(storage.text()).is_some_and(|nanos| nanos <= 0) {
        errors.push(FieldError::invalid(shown, storage.text(), "must be greater than zero"));
    }
    class_name(&spec.member("storageClassName"), errors);
    set_one_of(&spec.member("volumeMode"), &["Block", "Filesystem"], errors);
    data_source(&spec.member("dataSource"), errors);
    let reference = spec.member("dataSourceRef");
    data_source(&reference, errors);
    named(&reference.member("namespace"), names::label, errors);
    class_name(&spec.member("volumeAttributesClassName"), errors);
}

fn data_source(source: &At<'_>, errors: &mut Vec<FieldError>) {
    if !source.is_set() {
        return;
    }
    let (kind, group) = (source.member("kind"), source.member("apiGroup"));
    required(&source.member("name"), errors);
    required(&kind, errors);
    if group.is_absent() && kind.text() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(source.path.clone(), kind.text(), detail));
    }
    named(&group, names::subdomain, errors);
}

/// What a claim keeps: all of its spec, but once it is bound, it may grow and change its class of attributes.
fn frozen(spec: &Value, is_bound: bool) -> Value {
    let mut spec = spec.clone();
    if !is_bound {
        return spec;
    }
    if let Value::Object(members) = &mut spec {
        members.remove("volumeAttributesClassName");
    }
    if let Some(requests) = spec.pointer_mut("/resources/requests").and_then(Value::as_object_mut) {
        requests.remove("storage");
        if requests.is_empty()
            && let Some(Value::Object(resources)) = spec.get_mut("resources")
        {
            resources.remove("requests");
        }
    }
    spec
}

/// A claim without a volume may get one, and a claim without a class may get the default one.
fn frozen_after_binding(old: &Value, new: &Value, is_bound: bool) -> Value {
    let mut old = frozen(old, is_bound);
    if let Value::Object(members) = &mut old {
        for name in ["volumeName", "storageClassName"] {
            if let Some(value) = new.get(name).filter(|_| !members.contains_key(name)) {
                members.insert(name.to_owned(), value.clone());
            }
        }
    }
    old
}

/// Checks how a volume is used, or wanted; `missing` is what to say where nothing of it is said.
pub(super) fn access_modes(spec: &At<'_>, missing: &str, errors: &mut Vec<FieldError>) {
    let modes = spec.member("accessModes");
    if modes.is_absent() {
        errors.push(modes.missing(missing));
    }
    for mode in modes.items() {
        // Upstream reports the list, not the item.
        if !MODES.contains(&mode.text()) {
            errors.push(FieldError::not_supported(modes.path.clone(), mode.text(), &MODES));
        }
    }
    let is = |mode: &At<'_>| mode.text() == ALONE;
    if modes.items().any(|mode| is(&mode)) && modes.items().any(|mode| !is(&mode) && MODES.contains(&mode.text())) {
        errors.push(modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Checks the name of a class of volumes, where there is one.
pub(super) fn class_name(name: &At<'_>, errors: &mut Vec<FieldError>) {
    named(name, names::subdomain, errors);
}

pub(super) fn class(class: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    provisioner(&class.member("provisioner"), errors);
    parameters(&class.member("parameters"), errors);
    topologies(&class.member("allowedTopologies"), errors);
    one_of(&class.member("reclaimPolicy"), &["Delete", "Retain"], errors);
    one_of(&class.member("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"], errors);
    if let Some(old) = old {
        immutable(class, old, &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"], errors);
    }
}

/// Capitals are allowed, and shown small.
fn provisioner(provisioner: &At<'_>, errors: &mut Vec<FieldError>) {
    required(provisioner, errors);
    let name = provisioner.text().to_lowercase();
    if !name.is_empty() {
        let wrong = names::qualified(&name).into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(provisioner.path.clone(), name.as_str(), detail)));
    }
}

fn parameters(parameters: &At<'_>, errors: &mut Vec<FieldError>) {
    let too_long = |max: usize| FieldError::too_long(parameters.path.clone(), max as u64);
    if parameters.entries().count() > PARAMETERS_MAX {
        return errors.push(too_long(PARAMETERS_MAX));
    }
    if parameters.entries().any(|(name, _)| name.is_empty()) {
        errors.push(FieldError::invalid(parameters.path.clone(), "", "field can not be empty."));
    }
    let bytes: usize = parameters.entries().map(|(name, value)| name.len() + value.text().len()).sum();
    if bytes > PARAMETERS_BYTES_MAX {
        errors.push(too_long(PARAMETERS_BYTES_MAX));
    }
}

/// Checks where volumes of a class may be: terms without a label say nothing, as do terms that were said before.
fn topologies(topologies: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = vec![BTreeMap::new()];
    for term in topologies.items() {
        let expressions = term.member("matchLabelExpressions");
        let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for label in expressions.items() {
            let (key, values) = (label.member("key"), label.member("values"));
            required(&values, errors);
            let mut distinct = BTreeSet::new();
            errors.extend(values.items().filter(|value| !distinct.insert(value.text())).map(|value| value.again()));
            follows(&key, names::qualified, errors);
            if labels.insert(key.text(), distinct).is_some() {
                errors.push(key.again());
            }
        }
        if seen.contains(&labels) {
            errors.push(FieldError::duplicate(expressions.path.clone(), ""));
        }
        seen.push(labels);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::check;

    fn check_class(change: Value, expect: &[&str]) {
        let mut class = json!({"metadata": {"name": "a"}, "provisioner": "example.com/disk"});
        class.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        check(("storage.k8s.io", "v1", "StorageClass"), class, expect);
    }

    #[test]
    fn a_class_names_who_makes_its_volumes() {
        check_class(json!({"provisioner": "Example.com/Disk"}), &[]);
        check_class(json!({"provisioner": ""}), &["provisioner: Required value"]);
        check_class(json!({"parameters": {"": "a"}}), &[r#"parameters: Invalid value: "": field can not be empty."#]);
    }

    #[test]
    fn topologies_differ_and_say_something() {
        let zone = |values: Value| json!({"matchLabelExpressions": [{"key": "zone", "values": values}]});
        check_class(json!({"allowedTopologies": [zone(json!(["a"])), zone(json!(["b"]))]}), &[]);
        check_class(
            json!({"allowedTopologies": [zone(json!(["a", "b"])), zone(json!(["b", "a"]))]}),
            &[r#"allowedTopologies[1].matchLabelExpressions: Duplicate value: """#],
        );
        check_class(
            json!({"allowedTopologies": [{}]}),
            &[r#"allowedTopologies[0].matchLabelExpressions: Duplicate value: """#],
        );
        check_class(
            json!({"allowedTopologies": [zone(json!(["a", "a"]))]}),
            &[r#"allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a""#],
        );
    }
}
