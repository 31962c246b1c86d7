//! Volumes, claims and storage classes.

use serde_json::Value;

use super::cursor::{At, immutable, named, one_of, required, set_one_of};
use super::selector;
use crate::{FieldError, names, quantity};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

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
    access_modes(spec, errors);
    let alone = "ReadWriteOncePod";
    let modes: Vec<&str> = spec.member("accessModes").items().map(|mode| mode.text()).collect();
    if modes.contains(&alone) && modes.iter().any(|mode| *mode != alone && MODES.contains(mode)) {
        errors.push(spec.member("accessModes").forbidden("may not use ReadWriteOncePod with other access modes"));
    }
    let storage = spec.at("resources.requests.storage");
    let shown = crate::field::key(&spec.member("resources").path, "storage");
    if storage.is_absent() {
        errors.push(FieldError::required(shown, ""));
    } else if quantity::nanos(storage.text()).is_some_and(|nanos| nanos <= 0) {
        errors.push(FieldError::invalid(shown, storage.text(), "must be greater than zero"));
    }
    named(&spec.member("storageClassName"), names::subdomain, errors);
    set_one_of(&spec.member("volumeMode"), &["Block", "Filesystem"], errors);
    data_source(&spec.member("dataSource"), errors);
    let reference = spec.member("dataSourceRef");
    data_source(&reference, errors);
    named(&reference.member("namespace"), names::label, errors);
    named(&spec.member("volumeAttributesClassName"), names::subdomain, errors);
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

pub(super) fn volume(volume: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = volume.member("spec");
    access_modes(&spec, errors);
    let capacity = spec.member("capacity");
    required(&capacity, errors);
    if !capacity.is_absent() && capacity.value.get("storage").is_none() {
        errors.push(FieldError::not_supported(capacity.path, capacity.value.clone(), &["storage"]));
    }
    one_of(&spec.member("persistentVolumeReclaimPolicy"), &["Delete", "Recycle", "Retain"], errors);
    one_of(&spec.member("volumeMode"), &["Block", "Filesystem"], errors);
    if let Some(old) = old {
        immutable(volume, old, &["spec.volumeMode"], errors);
    }
}

fn access_modes(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let modes = spec.member("accessModes");
    if modes.is_absent() {
        errors.push(modes.missing("at least 1 access mode is required"));
    }
    for mode in modes.items() {
        // Upstream reports the list, not the item.
        if !MODES.contains(&mode.text()) {
            errors.push(FieldError::not_supported(modes.path.clone(), mode.text(), &MODES));
        }
    }
}

pub(super) fn class(class: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    required(&class.member("provisioner"), errors);
    one_of(&class.member("reclaimPolicy"), &["Delete", "Retain"], errors);
    one_of(&class.member("volumeBindingMode"), &["Immediate", "WaitForFirstConsumer"], errors);
    if let Some(old) = old {
        immutable(class, old, &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"], errors);
    }
}
