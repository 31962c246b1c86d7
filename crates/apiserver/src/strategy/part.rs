//! The part of an object that a request may change.

use serde_json::{Map, Value};
use windlass_schema::Kind;

use super::{has_status, keep};
use crate::object::{Object, take_over};

/// The part of an object that a request may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but what has a subresource of its own.
    Object,
    /// What was observed.
    Status,
    /// What holds a namespace.
    Finalize,
    /// The containers that are added to a running Pod.
    EphemeralContainers,
    /// The resources of the containers of a running Pod.
    Resize,
    /// The decision on a certificate signing request.
    Approval,
    /// The node of a Pod.
    Binding,
}

impl Part {
    /// The part behind a subresource.
    pub(crate) fn of(subresource: &str) -> Option<Self> {
        match subresource {
            "status" => Some(Self::Status),
            "finalize" => Some(Self::Finalize),
            "ephemeralcontainers" => Some(Self::EphemeralContainers),
            "resize" => Some(Self::Resize),
            "approval" => Some(Self::Approval),
            _ => None,
        }
    }

    /// Takes everything outside of the part from `old`.
    pub(super) fn restrict(self, kind: &Kind, object: &mut Value, old: &Value) {
        match self {
            Self::Object if has_status(kind) => take_over(object, old, "status"),
            Self::Object | Self::Binding => {}
            Self::Status => restrict_to_status(kind, object, old),
            Self::Finalize => restrict_to(object, old, &["/spec/finalizers"]),
            Self::EphemeralContainers => restrict_to(object, old, &["/spec/ephemeralContainers"]),
            Self::Resize => restrict_to_resources(object, old),
            Self::Approval => restrict_to_approval(object, old),
        }
    }
}

/// Whether a write of the status takes labels, annotations and the like along. Kinds that came late do not.
pub(super) fn status_writes_metadata(kind: &Kind) -> bool {
    kind.is_builtin() && !CLOSED_BY_STATUS.contains(&(kind.group.as_str(), kind.kind.as_str()))
}

const CLOSED_BY_STATUS: [(&str, &str); 15] = [
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourcePoolStatusRequest"),
    ("scheduling.k8s.io", "PodGroup"),
    ("scheduling.k8s.io", "Workload"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

fn restrict_to_status(kind: &Kind, object: &mut Value, old: &Value) {
    let others: Vec<String> = [object.as_object(), old.as_object()]
        .into_iter()
        .flatten()
        .flat_map(Map::keys)
        .filter(|name| !matches!(name.as_str(), "status" | "metadata" | "apiVersion" | "kind"))
        .cloned()
        .collect();
    keep(object, old, &others.iter().map(String::as_str).collect::<Vec<_>>());
    let metadata: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
        _ if !status_writes_metadata(kind) => &["managedFields", "resourceVersion"],
        ("apps", "Deployment") => &["managedFields", "resourceVersion", "annotations", "finalizers", "ownerReferences"],
        ("", "Pod") => &["managedFields", "resourceVersion", "labels", "annotations", "finalizers"],
        _ => &["managedFields", "resourceVersion", "labels", "annotations", "finalizers", "ownerReferences"],
    };
    restrict_metadata(object, old, metadata);
}

/// Of containers only what they may use counts, and how that changes; a list that is another one is left to validation.
fn restrict_to_resources(object: &mut Value, old: &Value) {
    restrict_to(object, old, &["/spec/containers", "/spec/initContainers", "/spec/resources"]);
    for list in ["containers", "initContainers"] {
        let items = |object: &Value| object["spec"][list].as_array().cloned().unwrap_or_default();
        let (new, mut kept) = (items(object), items(old));
        let same = new.len() == kept.len() && new.iter().zip(&kept).all(|(new, old)| new["name"] == old["name"]);
        if !same || new.is_empty() {
            continue;
        }
        for (container, new) in kept.iter_mut().zip(&new) {
            keep(container, new, &["resources", "resizePolicy"]);
        }
        object["spec"][list] = kept.into();
    }
}

/// A decision is a condition; notes about it may come along in the metadata.
fn restrict_to_approval(object: &mut Value, old: &Value) {
    let open = ["managedFields", "resourceVersion", "labels", "annotations", "finalizers", "ownerReferences"];
    restrict_metadata(object, old, &open);
    let metadata = object.metadata().cloned().unwrap_or_default();
    restrict_to(object, old, &["/status/conditions"]);
    *object.metadata_mut() = metadata;
}

/// Takes everything from `old` but the listed places and the ownership of fields.
fn restrict_to(object: &mut Value, old: &Value, pointers: &[&str]) {
    let mut kept = old.clone();
    for pointer in pointers {
        let (parent, name) = pointer.rsplit_once('/').expect("the pointers are constants");
        let value = object.pointer(pointer).cloned();
        let Some(members) = kept.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
        match value {
            Some(value) => members.insert(name.to_owned(), value),
            None => members.remove(name),
        };
    }
    for field in ["managedFields", "resourceVersion"] {
        let value = object.metadata().and_then(|metadata| metadata.get(field)).cloned().unwrap_or_default();
        kept.set_meta(field, value);
    }
    *object = kept;
}

fn restrict_metadata(object: &mut Value, old: &Value, open: &[&str]) {
    let mut metadata = old.metadata().cloned().unwrap_or_default();
    for field in open {
        match object.metadata().and_then(|metadata| metadata.get(*field)) {
            Some(value) => metadata.insert((*field).to_owned(), value.clone()),
            None => metadata.remove(*field),
        };
    }
    *object.metadata_mut() = metadata;
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::builtin;

    use super::*;

    fn check(plural: &str, part: Part, object: Value, expect: Value) {
        let kinds = builtin();
        let kind = kinds.find("", "v1", plural).or_else(|| kinds.find("apps", "v1", plural)).unwrap();
        let old = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}, "status": {"y": 1}});
        let mut object = object;
        part.restrict(kind, &mut object, &old);
        assert_eq!(object, expect, "{plural} {part:?}");
    }

    #[test]
    fn a_request_changes_its_part_only() {
        let new = json!({"metadata": {"labels": {"a": "2"}}, "spec": {"x": 2}, "status": {"y": 2}});
        let object = json!({"metadata": {"labels": {"a": "2"}}, "spec": {"x": 2}, "status": {"y": 1}});
        check("deployments", Part::Object, new.clone(), object);
        let status = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1}, "status": {"y": 2}});
        check("deployments", Part::Status, new.clone(), status);
        let labelled = json!({"metadata": {"labels": {"a": "2"}}, "spec": {"x": 1}, "status": {"y": 2}});
        check("nodes", Part::Status, new.clone(), labelled.clone());
        check("statefulsets", Part::Status, new.clone(), labelled);
        let annotated = json!({"metadata": {"labels": {"a": "2"}, "annotations": {"b": "3"}}, "status": {"y": 2}});
        let expect = json!({"metadata": {"labels": {"a": "1"}, "annotations": {"b": "3"}}, "spec": {"x": 1},
            "status": {"y": 2}});
        check("deployments", Part::Status, annotated, expect);
        let decided = json!({"metadata": {"annotations": {"b": "3"}}, "spec": {"x": 2},
            "status": {"y": 2, "conditions": ["Approved"]}});
        let expect = json!({"metadata": {"annotations": {"b": "3"}}, "spec": {"x": 1},
            "status": {"y": 1, "conditions": ["Approved"]}});
        check("nodes", Part::Approval, decided, expect);
        check("configmaps", Part::Object, new.clone(), new);
        let finalize = json!({"metadata": {}, "spec": {"finalizers": [], "x": 3}});
        let expect =
            json!({"metadata": {"labels": {"a": "1"}}, "spec": {"finalizers": [], "x": 1}, "status": {"y": 1}});
        check("namespaces", Part::Finalize, finalize, expect);
    }

    #[test]
    fn a_resize_changes_resources_only() {
        let kinds = builtin();
        let container =
            |image: &str, cpu: &str| json!({"name": "c", "image": image, "resources": {"limits": {"cpu": cpu}}});
        let pod = |containers: Vec<Value>| json!({"metadata": {}, "spec": {"containers": containers, "nodeName": "n"}});
        let old = pod(vec![container("a", "1")]);
        let mut object = pod(vec![container("b", "2")]);
        object["spec"]["nodeName"] = json!("m");
        object["spec"]["resources"] = json!({"limits": {"cpu": "3"}});
        Part::Resize.restrict(kinds.find("", "v1", "pods").unwrap(), &mut object, &old);
        let mut expect = pod(vec![container("a", "2")]);
        expect["spec"]["resources"] = json!({"limits": {"cpu": "3"}});
        assert_eq!(object["spec"], expect["spec"]);
        let mut more = pod(vec![container("b", "2"), container("c", "1")]);
        Part::Resize.restrict(kinds.find("", "v1", "pods").unwrap(), &mut more, &old);
        assert_eq!(more["spec"]["containers"].as_array().unwrap().len(), 2, "for validation to see");
    }
}
