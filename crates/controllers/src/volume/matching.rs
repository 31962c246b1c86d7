//! Which volumes a claim can be bound to.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use crate::quantity::Amount;
use crate::scheduler::selects;

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The storage class of a claim: `None` if none is named, empty if none is wanted.
pub(crate) fn claim_class(claim: &PersistentVolumeClaim) -> Option<&str> {
    let older = claim.annotations().get(CLASS_ANNOTATION).map(String::as_str);
    older.or_else(|| claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()))
}

/// How much a claim asks for.
pub(crate) fn request(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage")
}

/// How much a volume has.
pub(crate) fn capacity(volume: &PersistentVolume) -> Option<&Quantity> {
    volume.spec.as_ref()?.capacity.as_ref()?.get("storage")
}

/// The smallest of the volumes that are free and suit the claim, on `node` if that is known already.
pub(crate) fn best<'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl Iterator<Item = &'a PersistentVolume>,
    node: Option<&Node>,
) -> Option<&'a PersistentVolume> {
    let is_free = |volume: &&PersistentVolume| {
        let spec = volume.spec.as_ref();
        spec.is_some_and(|spec| spec.claim_ref.is_none()) && volume.metadata.deletion_timestamp.is_none()
    };
    let free = volumes.filter(is_free).filter(|volume| suits(claim, volume).is_none() && reaches(volume, node));
    free.min_by_key(|volume| (capacity(volume).map(Amount::from), volume.name_any()))
}

/// Whether programs on the node can use the volume.
pub(crate) fn reaches(volume: &PersistentVolume, node: Option<&Node>) -> bool {
    let Some(node) = node else { return true };
    let required = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    required.is_none_or(|required| selects(required, node))
}

/// Whether the volume was reserved for the claim, by its name or by its very identity.
pub(crate) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(reference) = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()) else { return false };
    let uid = reference.uid.as_deref().filter(|uid| !uid.is_empty());
    reference.namespace == claim.metadata.namespace
        && reference.name == claim.metadata.name
        && uid.is_none_or(|uid| claim.metadata.uid.as_deref() == Some(uid))
}

/// Why the volume is not what the claim asks for, if it is not.
pub(crate) fn suits(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<&'static str> {
    let (Some(wanted), Some(offered)) = (claim.spec.as_ref(), volume.spec.as_ref()) else {
        return Some("it has no spec");
    };
    let amount = |quantity: Option<&Quantity>| quantity.map(Amount::from).unwrap_or_default();
    if amount(request(claim)) > amount(capacity(volume)) {
        return Some("requested PV is too small");
    }
    if claim_class(claim).unwrap_or_default() != offered.storage_class_name.as_deref().unwrap_or_default() {
        return Some("storageClassName does not match");
    }
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    if mode(&wanted.volume_mode) != mode(&offered.volume_mode) {
        return Some("incompatible volumeMode");
    }
    if !has_modes(wanted.access_modes.as_deref().unwrap_or_default(), offered) {
        return Some("incompatible accessMode");
    }
    let selector = wanted.selector.clone().map(Selector::try_from);
    match selector {
        None => None,
        Some(Ok(selector)) if selector.matches(volume.labels()) => None,
        Some(_) => Some("labels do not match the selector"),
    }
}

fn has_modes(wanted: &[String], offered: &PersistentVolumeSpec) -> bool {
    wanted.iter().all(|mode| offered.access_modes.iter().flatten().any(|offered| offered == mode))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(name: &str, size: &str, more: Value) -> PersistentVolume {
        let mut spec = json!({"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]});
        more.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"disk": name}}, "spec": spec})).unwrap()
    }

    fn claim(more: Value) -> PersistentVolumeClaim {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}});
        more.as_object().unwrap().iter().for_each(|(key, value)| spec[key] = value.clone());
        serde_json::from_value(json!({"metadata": {"name": "c", "namespace": "ns", "uid": "u"}, "spec": spec})).unwrap()
    }

    #[test]
    fn the_smallest_volume_that_suits_is_taken() {
        let volumes = [
            volume("small", "1Gi", json!({})),
            volume("large", "9Gi", json!({})),
            volume("right", "2Gi", json!({})),
            volume("taken", "2Gi", json!({"claimRef": {"name": "x", "namespace": "ns"}})),
            volume("fast", "2Gi", json!({"storageClassName": "fast"})),
            volume("block", "3Gi", json!({"volumeMode": "Block"})),
        ];
        let check = |more: Value, expect: Option<&str>| {
            let found = best(&claim(more.clone()), volumes.iter(), None).map(|volume| volume.name_any());
            assert_eq!(found.as_deref(), expect, "{more}");
        };
        check(json!({}), Some("right"));
        check(json!({"selector": {"matchLabels": {"disk": "large"}}}), Some("large"));
        check(json!({"storageClassName": "fast"}), Some("fast"));
        check(json!({"storageClassName": "slow"}), None);
        check(json!({"volumeMode": "Block"}), Some("block"));
        check(json!({"accessModes": ["ReadWriteMany"]}), None);
        check(json!({"resources": {"requests": {"storage": "10Gi"}}}), None);
    }

    #[test]
    fn a_volume_on_one_node_is_of_use_there_only() {
        let node = |name: &str| -> Node {
            serde_json::from_value(json!({"metadata": {"name": name, "labels": {"host": name}}})).unwrap()
        };
        let local = volume(
            "local",
            "2Gi",
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}]}}}),
        );
        let found = |name: &str| best(&claim(json!({})), [&local].into_iter(), Some(&node(name))).is_some();
        assert_eq!([found("a"), found("b")], [true, false]);
    }

    #[test]
    fn a_reservation_holds_for_the_claim_that_it_means() {
        let reserved =
            |uid: &str| volume("v", "2Gi", json!({"claimRef": {"namespace": "ns", "name": "c", "uid": uid}}));
        let told = ["u", "", "other"].map(|uid| is_for(&reserved(uid), &claim(json!({}))));
        assert_eq!(told, [true, true, false]);
    }
}
