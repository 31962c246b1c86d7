//! What differs between kinds, where a kind has behaviour of its own.

mod certificate;
mod job;
mod namespace;
mod part;
mod pod;
mod rules;
mod secret;
mod service;
mod service_ports;
mod volume;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use windlass_schema::{
    FieldError, Kind, builtin_status_warnings, builtin_warnings, validate_builtin, validate_builtin_status,
    validate_metadata, validate_pod_joining, validate_pod_resize,
};
use windlass_store::Entry;

use crate::{
    Api, ApiError, admission,
    auth::User,
    crd,
    object::{Object, take_over},
};

pub(crate) use part::Part;
pub(crate) use rules::rules;

const DEFINITIONS: &str = "apiextensions.k8s.io";

/// Whether status is a part of its own, which only `/status` writes.
fn has_status(kind: &Kind) -> bool {
    kind.subresource("status").is_some()
}

/// The fields that nobody gets to own through a subresource.
pub(crate) fn reset_fields<'a>(kind: &Kind, subresource: &str) -> &'a [&'a str] {
    match subresource {
        "" if has_status(kind) => &["status"],
        "status" if part::status_writes_metadata(kind) => &["spec"],
        "status" => &["metadata", "spec"],
        _ => &[],
    }
}

/// Says what was said in a short form in the form that is stored.
pub(crate) fn expand(kind: &Kind, object: &mut Value) {
    if is(kind, "", "Secret") {
        secret::encode_string_data(object);
    }
    if is(kind, "", "Pod") {
        pod::align_addresses(object);
    }
}

/// Sets what clients may not set on a new object; gives what to tell them of it.
pub(crate) fn prepare_create(kind: &Kind, object: &mut Value, user: &User) -> Vec<String> {
    // A node reports its own state when it joins.
    if has_status(kind) && !is(kind, "", "Node") {
        remove(object, "status");
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => return pod::prepare_create(object),
        ("", "Namespace") => namespace::prepare_create(object),
        ("", "PersistentVolume") => volume::prepare_create(object),
        ("", "PersistentVolumeClaim") => object["status"] = json!({ "phase": "Pending" }),
        ("", "Service") => object["status"] = json!({ "loadBalancer": {} }),
        ("batch", "Job") => job::prepare_create(object),
        ("certificates.k8s.io", "CertificateSigningRequest") => certificate::prepare_create(object, user),
        (DEFINITIONS, "CustomResourceDefinition") => crd::strategy::prepare_create(object),
        _ => {}
    }
    Vec::new()
}

/// Keeps what an update of `part` may not change.
pub(crate) fn prepare_update(kind: &Kind, part: Part, object: &mut Value, old: &Value, now: &str) {
    part.restrict(kind, object, old);
    if is(kind, "certificates.k8s.io", "CertificateSigningRequest") && part == Part::Object {
        take_over(object, old, "spec");
    }
    if is(kind, "", "Pod") && part == Part::Status {
        pod::keep_quality(object, old);
    }
    if is(kind, "", "PersistentVolume") && part == Part::Status {
        volume::prepare_status(object, old, now);
    }
    if is(kind, "", "Namespace") && part == Part::Object {
        namespace::prepare_update(object, old);
    }
    if is(kind, DEFINITIONS, "CustomResourceDefinition") && part == Part::Object {
        crd::strategy::prepare_update(object, old);
    }
}

/// Sets what a kind shows while it is being deleted.
pub(crate) fn prepare_delete(kind: &Kind, object: &mut Value, now: Timestamp) {
    if is(kind, "", "Namespace") {
        object["status"]["phase"] = "Terminating".into();
    }
    if is(kind, DEFINITIONS, "CustomResourceDefinition") {
        crd::strategy::begin_deletion(object, now);
    }
}

/// Whether nothing but finalizers of the metadata holds the object.
pub(crate) fn may_go(kind: &Kind, object: &Value) -> bool {
    !is(kind, "", "Namespace") || namespace::is_finalized(object)
}

/// Whether a write that changes nothing may be left out. Kubernetes stores a new claim without its phase, so that whatever
/// is written to it first is a change, which watchers see.
pub(crate) fn is_settled(kind: &Kind, entry: &Entry) -> bool {
    !is(kind, "", "PersistentVolumeClaim") || entry.created != entry.modified
}

/// How long an object may take to end; `None` for kinds that just go.
pub(crate) fn grace_seconds(kind: &Kind, live: &Value, asked: Option<i64>) -> Option<i64> {
    is(kind, "", "Pod").then(|| pod::grace_seconds(live, asked))
}

/// Whether the first delete does nothing but mark the object and set what holds it.
pub(crate) fn only_begins(kind: &Kind) -> bool {
    is(kind, DEFINITIONS, "CustomResourceDefinition")
}

/// Whether the time that an object may take is written into it; these two only wait.
pub(crate) fn tells_grace(kind: &Kind) -> bool {
    !is(kind, "", "Namespace") && !is(kind, DEFINITIONS, "CustomResourceDefinition")
}

/// Whether what is wanted changed, and not only metadata or what is observed.
pub(crate) fn wanted_changed(kind: &Kind, part: Part, object: &Value, old: &Value) -> bool {
    let counts = |name: &str| match name {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !has_status(kind),
        _ => true,
    };
    let differs = |one: &Value, other: &Value| {
        let mut members = one.as_object().into_iter().flatten().filter(|(name, _)| counts(name));
        members.any(|(name, value)| other.get(name) != Some(value))
    };
    let noted = |object: &Value, field: &str| {
        let entries = object.metadata().and_then(|metadata| metadata.get(field)?.as_object()).cloned();
        entries.unwrap_or_default()
    };
    let notes_differ = match kind.kind.as_str() {
        // ReplicaSets get the annotations of their Deployment.
        "Deployment" if is(kind, "apps", "Deployment") => noted(object, "annotations") != noted(old, "annotations"),
        // The labels of a slice say whose addresses it has.
        "EndpointSlice" if is(kind, "discovery.k8s.io", "EndpointSlice") => {
            noted(object, "labels") != noted(old, "labels")
        }
        _ => false,
    };
    differs(object, old) || differs(old, object) || (notes_differ && part == Part::Object)
}

/// What breaks the rules of the kind.
pub(crate) fn validate(kind: &Kind, part: Part, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = match part {
        Part::Object => validate_builtin(kind, object, old),
        Part::EphemeralContainers => validate_pod_joining(kind, object, old.unwrap_or(&Value::Null)),
        Part::Resize => validate_pod_resize(kind, object, old.unwrap_or(&Value::Null)),
        Part::Status => validate_builtin_status(kind, object, old),
        Part::Finalize | Part::Approval | Part::Binding => validate_metadata(kind, object, old),
    };
    if part == Part::Object && is(kind, DEFINITIONS, "CustomResourceDefinition") {
        errors.extend(match old {
            Some(old) => crd::validate::update(object, old),
            None => crd::validate::create(object),
        });
    }
    if old.is_none() && is(kind, "certificates.k8s.io", "CertificateSigningRequest") {
        errors.extend(certificate::validate(object));
    }
    if part == Part::Object && kind.group == "admissionregistration.k8s.io" {
        errors.extend(admission::expressions::check(object, old));
    }
    errors
}

/// What to tell the writer of an object that breaks no rule.
pub(crate) fn warnings(kind: &Kind, part: Part, object: &Value, old: Option<&Value>) -> Vec<String> {
    match part {
        Part::Object if is(kind, "", "Secret") => {
            builtin_warnings(kind, object, old).into_iter().chain(secret::mismatch(object)).collect()
        }
        Part::Object => builtin_warnings(kind, object, old),
        Part::Status => builtin_status_warnings(kind, object),
        Part::EphemeralContainers | Part::Resize | Part::Finalize | Part::Approval | Part::Binding => Vec::new(),
    }
}

/// Gives the object addresses and ports. What is returned must be held until it is stored.
pub(crate) async fn allocate(
    api: &Api,
    kind: &Kind,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<Option<OwnedMutexGuard<()>>, ApiError> {
    if !is(kind, "", "Service") {
        return Ok(None);
    }
    let guard = api.allocation().await;
    let used = service::Used::of(&api.store().snapshot(), object.uid());
    service::allocate(api.config(), &used, object, old)?;
    Ok(Some(guard))
}

fn is(kind: &Kind, group: &str, name: &str) -> bool {
    kind.kind == name && kind.group == group
}

fn remove(object: &mut Value, field: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(field);
    }
}

/// Gives `object` the listed members of `old`.
fn keep(object: &mut Value, old: &Value, fields: &[&str]) {
    fields.iter().for_each(|field| take_over(object, old, field));
}
