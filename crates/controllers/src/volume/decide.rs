//! What a claim needs next.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;

use super::matching;

/// Our provisioner, by the name that storage classes give it.
pub(crate) const PROVISIONER: &str = "windlass.dev/local-path";
/// Says that both sides of a binding are written.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Where the scheduler says which node the first Pod goes to.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The next step of a claim.
#[derive(Debug, PartialEq)]
pub(crate) enum Step<'a> {
    /// Nothing can be done before something changes; what to tell.
    Wait { reason: &'static str, message: String, is_warning: bool },
    /// Bind it to the volume, or see that the binding is complete.
    Bind(&'a PersistentVolume),
    /// Make a volume for it.
    Provision(&'a StorageClass),
    /// It is for another provisioner.
    Delegate(&'a StorageClass),
    /// Its volume is gone, or another's.
    Lose { reason: &'static str, message: &'static str },
}

/// What is known around a claim.
pub(crate) struct Surroundings<'a> {
    pub(crate) volumes: Vec<&'a PersistentVolume>,
    /// The class that it names, if that is there.
    pub(crate) class: Option<&'a StorageClass>,
    /// The node that its first Pod goes to, if that is decided.
    pub(crate) node: Option<&'a Node>,
}

/// Decides about a claim.
pub(crate) fn next<'a>(claim: &PersistentVolumeClaim, around: &Surroundings<'a>) -> Step<'a> {
    let volume = |name: &str| around.volumes.iter().copied().find(|volume| volume.name_any() == name);
    let named = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
    match named {
        Some(name) if is_bound(claim) => match volume(name) {
            Some(volume) if matching::is_for(volume, claim) => Step::Bind(volume),
            Some(_) => Step::Lose {
                reason: "ClaimMisbound",
                message: "Two claims are bound to the same volume, this one is bound incorrectly",
            },
            None => Step::Lose {
                reason: "ClaimLost",
                message: "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            },
        },
        Some(name) => prebound(claim, name, volume(name)),
        None => unbound(claim, around),
    }
}

/// The claim names its volume.
fn prebound<'a>(claim: &PersistentVolumeClaim, name: &str, volume: Option<&'a PersistentVolume>) -> Step<'a> {
    let warn = |reason, message| Step::Wait { reason, message, is_warning: true };
    let Some(volume) = volume else {
        return warn("FailedBinding", format!("volume {name:?} is not there"));
    };
    if matching::is_for(volume, claim) {
        return Step::Bind(volume);
    }
    if volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some()) {
        return warn("FailedBinding", format!("volume {name:?} already bound to a different claim."));
    }
    match matching::suits(claim, volume) {
        None => Step::Bind(volume),
        Some(why) => warn("VolumeMismatch", format!("Cannot bind to requested volume {name:?}: {why}")),
    }
}

fn unbound<'a>(claim: &PersistentVolumeClaim, around: &Surroundings<'a>) -> Step<'a> {
    if let Some(reserved) = around.volumes.iter().find(|volume| matching::is_for(volume, claim)) {
        return Step::Bind(reserved);
    }
    if is_delayed(around.class) && around.node.is_none() {
        return Step::Wait {
            reason: "WaitForFirstConsumer",
            message: "waiting for first consumer to be created before binding".to_owned(),
            is_warning: false,
        };
    }
    if let Some(volume) = matching::best(claim, around.volumes.iter().copied(), around.node) {
        return Step::Bind(volume);
    }
    let wait = |reason, message: String, is_warning| Step::Wait { reason, message, is_warning };
    match (matching::claim_class(claim), around.class) {
        (Some(""), _) | (None, None) => {
            let message = "no persistent volumes available for this claim and no storage class is set";
            wait("FailedBinding", message.to_owned(), false)
        }
        (Some(name), None) => {
            wait("ProvisioningFailed", format!("storageclass.storage.k8s.io {name:?} not found"), true)
        }
        (_, Some(class)) if class.provisioner == PROVISIONER => Step::Provision(class),
        (_, Some(class)) if class.provisioner == "kubernetes.io/no-provisioner" => {
            wait("FailedBinding", "no persistent volumes available for this claim".to_owned(), false)
        }
        (_, Some(class)) => Step::Delegate(class),
    }
}

/// Whether both sides of the claim's binding are written.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.annotations().contains_key(BIND_COMPLETED)
}

/// Whether claims of the class wait for a Pod.
pub(crate) fn is_delayed(class: Option<&StorageClass>) -> bool {
    class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(name: &str, claim_ref: Value) -> PersistentVolume {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "claimRef": claim_ref}}))
        .unwrap()
    }

    fn check(claim: Value, volumes: &[PersistentVolume], class: Option<(&str, &str)>, expect: &str) {
        let mut object = json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        if claim["bound"] == true {
            object["metadata"]["annotations"] = json!({ BIND_COMPLETED: "yes" });
        }
        object["spec"]["volumeName"] = claim["volume"].clone();
        object["spec"]["storageClassName"] = claim["class"].clone();
        let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
        let class: Option<StorageClass> = class.map(|(provisioner, mode)| {
            let class = json!({"metadata": {"name": "k"}, "provisioner": provisioner, "volumeBindingMode": mode});
            serde_json::from_value(class).unwrap()
        });
        let around = Surroundings {
            volumes: volumes.iter().collect(),
            class: class.as_ref(),
            node: (claim["node"] == true).then_some(&node),
        };
        let told = match next(&serde_json::from_value(object).unwrap(), &around) {
            Step::Wait { reason, .. } | Step::Lose { reason, .. } => reason.to_owned(),
            Step::Bind(volume) => format!("bind {}", volume.name_any()),
            Step::Provision(_) => "provision".to_owned(),
            Step::Delegate(_) => "delegate".to_owned(),
        };
        assert_eq!(told, expect, "{claim}");
    }

    #[test]
    fn a_claim_finds_or_gets_a_volume() {
        let free = || [volume("v", json!(null))];
        let (now, later) = ((PROVISIONER, "Immediate"), (PROVISIONER, "WaitForFirstConsumer"));
        check(json!({}), &free(), None, "bind v");
        check(json!({}), &[], None, "FailedBinding");
        check(json!({"class": ""}), &[], None, "FailedBinding");
        check(json!({"class": "k"}), &free(), None, "ProvisioningFailed");
        check(json!({"class": "k"}), &free(), Some(now), "provision");
        check(json!({"class": "k"}), &[], Some(later), "WaitForFirstConsumer");
        check(json!({"class": "k", "node": true}), &[], Some(later), "provision");
        check(json!({"class": "k"}), &[], Some(("example.com/disks", "Immediate")), "delegate");
        check(json!({"class": "k"}), &[], Some(("kubernetes.io/no-provisioner", "Immediate")), "FailedBinding");
        let reserved = [volume("v", json!(null)), volume("r", json!({"namespace": "ns", "name": "c"}))];
        check(json!({}), &reserved, None, "bind r");
    }

    #[test]
    fn a_claim_that_names_its_volume_gets_that_or_none() {
        let other = || json!({"namespace": "ns", "name": "other", "uid": "x"});
        let own = || json!({"namespace": "ns", "name": "c", "uid": "u"});
        check(json!({"volume": "v"}), &[volume("v", json!(null))], None, "bind v");
        check(json!({"volume": "v", "class": "k"}), &[volume("v", json!(null))], None, "VolumeMismatch");
        check(json!({"volume": "v"}), &[volume("v", other())], None, "FailedBinding");
        check(json!({"volume": "v"}), &[], None, "FailedBinding");
        check(json!({"volume": "v", "bound": true}), &[volume("v", own())], None, "bind v");
        check(json!({"volume": "v", "bound": true}), &[volume("v", other())], None, "ClaimMisbound");
        check(json!({"volume": "v", "bound": true}), &[], None, "ClaimLost");
    }
}
