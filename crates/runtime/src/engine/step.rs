//! The decisions of one pass: what to apply, what to prune, what to leave alone.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_core::{Child, names};

use super::difference::Differences;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The object does not exist.
    Create(Child),
    /// The object is not as wanted.
    Update(Child, Differences),
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
}

/// Why a wanted object is left alone; a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
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
    /// Completes a child: namespace, owner reference, label.
    pub(crate) fn claim(&self, mut child: Child) -> Result<Child, Refusal> {
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
        if let Some(value) = self.restarted_at.as_ref().filter(|_| RESTARTABLE.contains(&kind.as_str())) {
            child.object["spec"]["template"]["metadata"]["annotations"][names::RESTARTED_AT] = value.clone().into();
        }
        Ok(child)
    }

    /// What is to be done so that `child` is as wanted, given what lives under its name.
    pub(crate) fn step(&self, child: Child, live: Option<&Value>) -> Result<Option<Step>, Refusal> {
        let Some(live) = live else { return Ok(Some(Step::Create(child))) };
        self.check_title(&child, live)?;
        let is_going = !live["metadata"]["deletionTimestamp"].is_null();
        if is_going {
            return Ok(None); // It cannot be kept; its end wakes the owner, who makes it anew.
        }
        let differences = Differences::between(&child.object, live, &self.manager);
        Ok((self.force || !differences.is_empty()).then_some(Step::Update(child, differences)))
    }

    /// Whether this owner may change `live`.
    fn check_title(&self, child: &Child, live: &Value) -> Result<(), Refusal> {
        let (kind, name) = (child.resource.kind.clone(), child.name.clone());
        let owners = live["metadata"]["ownerReferences"].as_array();
        match owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
            Some(owner) if owner["uid"] == self.reference.uid.as_str() => Ok(()),
            Some(owner) => {
                let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
                Err(Refusal::Controlled { kind, name, owner: format!("{} {}", text("kind"), text("name")) })
            }
            None if live["metadata"]["labels"][names::MANAGED_BY] == self.manager.as_str() => Ok(()),
            None => Err(Refusal::Foreign { kind, name, manager: self.manager.clone(), label: names::MANAGED_BY }),
        }
    }

    /// Whether an object of this owner is to be removed when it is no longer wanted: only what this operator made.
    pub(crate) fn may_prune(&self, meta: &ObjectMeta) -> bool {
        let is_ours =
            meta.labels.iter().flatten().any(|(key, value)| key == names::MANAGED_BY && *value == self.manager);
        let controller = crate::owners::controller_of(meta);
        is_ours && controller.is_some_and(|owner| owner.uid == self.reference.uid) && meta.deletion_timestamp.is_none()
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
        let child = owner().claim(child(None)).unwrap();
        let text = match owner().step(child, live.as_ref()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Step::Create(_))) => "create".into(),
            Ok(Some(Step::Update(..))) => "update".into(),
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
        check(Some(json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "op"}}})), "update");
        let going =
            json!({"metadata": {"ownerReferences": controlled("owner"), "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        check(Some(going), "nothing");
    }

    #[test]
    fn a_child_gets_the_namespace_owner_and_label() {
        let claimed = owner().claim(child(None)).unwrap();
        assert_eq!(claimed.object["metadata"]["namespace"], "a");
        assert_eq!(claimed.object["metadata"]["ownerReferences"][0]["uid"], "owner");
        assert_eq!(claimed.object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "op");
        let refusal = owner().claim(child(Some("b"))).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "ConfigMap c cannot be in namespace b: a resource owns objects of its own namespace only"
        );
    }
}
