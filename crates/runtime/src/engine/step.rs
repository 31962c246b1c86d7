//! The decisions of one pass: what to apply, what to prune, what to leave alone.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_core::{Child, Piece, names};

use super::difference::Differences;
use super::parts::Leftover;
use crate::key::ObjectKey;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The object does not exist.
    Create(Child),
    /// The object is not as wanted.
    Update(Child, Differences),
    /// The same, and it belongs to nobody: whoever decides about what they have takes it over before they change it.
    Adopt(Child, Differences),
    /// The object is no longer wanted.
    Delete(Unwanted),
}

/// An object that is no longer wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unwanted {
    pub(crate) resource: ApiResource,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: Option<String>,
    /// Its place in the order, if it has one.
    pub(crate) mark: Mark,
    /// Since when it is on its way out.
    pub(crate) going_since: Option<Timestamp>,
    /// What holds it, but for the API itself.
    pub(crate) finalizers: Vec<String>,
}

/// The finalizer by which the API holds an object until its dependents are gone.
const FOREGROUND: &str = "foregroundDeletion";

impl Unwanted {
    pub(crate) fn of(resource: &ApiResource, meta: ObjectMeta) -> Option<Self> {
        let mut finalizers = meta.finalizers.unwrap_or_default();
        finalizers.retain(|finalizer| finalizer != FOREGROUND);
        Some(Self {
            resource: resource.clone(),
            namespace: meta.namespace,
            name: meta.name?,
            uid: meta.uid?,
            resource_version: meta.resource_version,
            mark: Mark::read(meta.annotations.as_ref()),
            going_since: meta.deletion_timestamp.map(|time| time.0),
            finalizers,
        })
    }

    /// Kind and name.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.resource.kind, self.name)
    }

    /// As the decision takes it.
    pub(crate) fn leftover(&self) -> Leftover {
        let (Mark { part, after }, going) = (self.mark.clone(), self.going_since.is_some());
        Leftover { title: self.title(), part, after, going }
    }
}

/// The place of an object in the order of parts. It is written on the object, so that whoever removes it knows its place,
/// whatever is wanted by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) part: Option<String>,
    pub(crate) after: Vec<String>,
}

impl Mark {
    pub(crate) fn of(piece: &Piece) -> Self {
        Self { part: Some(piece.name.clone()), after: piece.after.clone() }
    }

    /// Reads it from the annotations of an object.
    pub(crate) fn read(annotations: Option<&BTreeMap<String, String>>) -> Self {
        let value = |name: &str| annotations.and_then(|annotations| annotations.get(name));
        let after = value(names::AFTER).map(String::as_str).unwrap_or_default();
        let after = after.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Self { part: value(names::PART).cloned(), after }
    }

    fn write(&self, metadata: &mut Value) {
        if let Some(part) = &self.part {
            metadata["annotations"][names::PART] = part.clone().into();
        }
        if !self.after.is_empty() {
            metadata["annotations"][names::AFTER] = self.after.join(",").into();
        }
    }
}

/// Why a wanted object is left alone; a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("parts have an order: add .ordered() to the operator")]
    Unordered,
    #[error("{kind} is not declared: add .owns::<{kind}>() to the operator")]
    Undeclared { kind: String },
    #[error("{kind} {name} cannot be in namespace {namespace}: a resource owns objects of its own namespace only")]
    Namespace { kind: String, name: String, namespace: String },
    #[error("{kind} {name} belongs to {owner}: rename one of the two, or delete it")]
    Controlled { kind: String, name: String, owner: String },
    #[error(
        "{kind} {name} exists and was not made by {manager}: delete it, or label it {label}={manager} to hand it over"
    )]
    Foreign { kind: String, name: String, manager: String, label: &'static str },
}

/// In whose name a pass is made.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) reference: OwnerReference,
    pub(crate) namespace: Option<String>,
    /// The operator's name.
    pub(crate) manager: String,
    /// Whether children are applied although they are as wanted.
    pub(crate) force: bool,
    /// When the Pods were last told to restart.
    pub(crate) restarted_at: Option<String>,
}

/// The workloads that restart their Pods when the template changes.
pub(crate) const RESTARTABLE: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

impl Owner {
    /// Where the resource is.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.reference.name.clone() }
    }

    /// Completes a child: namespace, owner reference, label, place in the order.
    pub(crate) fn claim(&self, mut child: Child, mark: Option<&Mark>) -> Result<Child, Refusal> {
        let kind = child.resource.kind.clone();
        match (&self.namespace, &child.namespace) {
            (Some(own), Some(namespace)) if own != namespace => {
                return Err(Refusal::Namespace { kind, name: child.name, namespace: namespace.clone() });
            }
            (Some(own), _) => child.namespace = Some(own.clone()),
            (None, _) => {}
        }
        let metadata = &mut child.object["metadata"];
        if let Some(namespace) = &child.namespace {
            metadata["namespace"] = namespace.clone().into();
        }
        metadata["ownerReferences"] = json!([self.reference]);
        metadata["labels"][names::MANAGED_BY] = self.manager.clone().into();
        if let Some(mark) = mark {
            mark.write(metadata);
        }
        if let Some(value) = self.restarted_at.as_ref().filter(|_| RESTARTABLE.contains(&kind.as_str())) {
            child.object["spec"]["template"]["metadata"]["annotations"][names::RESTARTED_AT] = value.clone().into();
        }
        Ok(child)
    }

    /// What is to be done so that `child` is as wanted, given what lives under its name.
    pub(crate) fn step(&self, child: Child, live: Option<&Value>) -> Result<Option<Step>, Refusal> {
        let Some(live) = live else { return Ok(Some(Step::Create(child))) };
        let is_own = self.check_title(&child, live)?;
        let is_going = !live["metadata"]["deletionTimestamp"].is_null();
        if is_going {
            return Ok(None); // It cannot be kept; its end wakes the owner, who makes it anew.
        }
        let differences = Differences::between(&child.object, live, &self.manager);
        let step = if is_own { Step::Update } else { Step::Adopt };
        Ok((self.force || !differences.is_empty()).then(|| step(child, differences)))
    }

    /// Whether `live` belongs to this owner, or to nobody; if to somebody else it may not be changed.
    fn check_title(&self, child: &Child, live: &Value) -> Result<bool, Refusal> {
        let (kind, name) = (child.resource.kind.clone(), child.name.clone());
        let owners = live["metadata"]["ownerReferences"].as_array();
        match owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
            Some(owner) if owner["uid"] == self.reference.uid.as_str() => Ok(true),
            Some(owner) => {
                let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                Err(Refusal::Controlled { kind, name, owner: format!("{} {}", text("kind"), text("name")) })
            }
            None if live["metadata"]["labels"][names::MANAGED_BY] == self.manager.as_str() => Ok(false),
            None => Err(Refusal::Foreign { kind, name, manager: self.manager.clone(), label: names::MANAGED_BY }),
        }
    }

    /// Whether this operator made an object for this owner: only such are removed when they are no longer wanted.
    pub(crate) fn made(&self, meta: &ObjectMeta) -> bool {
        let is_ours =
            meta.labels.iter().flatten().any(|(key, value)| key == names::MANAGED_BY && *value == self.manager);
        is_ours && crate::owners::controller_of(meta).is_some_and(|owner| owner.uid == self.reference.uid)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn owner() -> Owner {
        let reference = OwnerReference {
            api_version: "g/v1".into(),
            kind: "Cache".into(),
            name: "c".into(),
            uid: "owner".into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Owner { reference, namespace: Some("a".into()), manager: "op".into(), force: false, restarted_at: None }
    }

    fn child(namespace: Option<&str>) -> Child {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("c".into());
        object.metadata.namespace = namespace.map(Into::into);
        Child::new(&object).unwrap()
    }

    fn check(live: Option<Value>, expected: &str) {
        let child = owner().claim(child(None), None).unwrap();
        let text = match owner().step(child, live.as_ref()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Step::Create(_))) => "create".into(),
            Ok(Some(Step::Update(..))) => "update".into(),
            Ok(Some(Step::Adopt(..))) => "adopt".into(),
            Ok(Some(Step::Delete(_))) => "delete".into(),
            Err(refusal) => refusal.to_string(),
        };
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn objects_of_others_are_left_alone() {
        let controlled = |uid: &str| json!([{"uid": uid, "controller": true, "kind": "Web", "name": "w"}]);
        check(None, "create");
        check(Some(json!({"metadata": {"ownerReferences": controlled("owner")}})), "update");
        check(Some(json!({"metadata": {"ownerReferences": controlled("other")}})), "ConfigMap c belongs to Web w");
        check(Some(json!({"metadata": {"name": "c"}})), "ConfigMap c exists and was not made by op");
        check(Some(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "op"}}})), "adopt");
        let going =
            json!({"metadata": {"ownerReferences": controlled("owner"), "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        check(Some(going), "nothing");
    }

    #[test]
    fn a_child_gets_the_namespace_owner_and_label() {
        let mark = Mark { part: Some("b".into()), after: vec!["a".into(), "c".into()] };
        let claimed = owner().claim(child(None), Some(&mark)).unwrap();
        let annotations = serde_json::from_value(claimed.object["metadata"]["annotations"].clone()).unwrap();
        assert_eq!(Mark::read(Some(&annotations)), mark);
        assert_eq!(claimed.object["metadata"]["namespace"], "a");
        assert_eq!(claimed.object["metadata"]["ownerReferences"][0]["uid"], "owner");
        assert_eq!(claimed.object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "op");
        let refusal = owner().claim(child(Some("b")), None).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "ConfigMap c cannot be in namespace b: a resource owns objects of its own namespace only"
        );
    }
}
