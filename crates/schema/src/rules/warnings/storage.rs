//! Volumes, claims and classes of storage.

use super::super::cursor::At;
use super::{Warnings, node, volume, whole_bytes};
use crate::field::key;

const CLASS: (&str, &str) =
    ("volume.beta.kubernetes.io/storage-class", r#"deprecated since v1.8; use "storageClassName" attribute instead"#);
const MOUNT_OPTIONS: (&str, &str) =
    ("volume.beta.kubernetes.io/mount-options", r#"deprecated since v1.31; use "mountOptions" attribute instead"#);
/// The deprecated kinds that volumes in Pods and PersistentVolumes are both warned of.
const DEPRECATED: [&str; 6] = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];

fn annotations(object: &At<'_>, deprecated: &[(&str, &str)], warnings: &mut Warnings) {
    let notes = object.at("metadata.annotations");
    for (name, sentence) in deprecated.iter().filter(|(name, _)| notes.value.get(*name).is_some()) {
        warnings.add(format!("{}: {sentence}", key(&notes.path, name)));
    }
}

pub(super) fn volume(object: &At<'_>, warnings: &mut Warnings) {
    annotations(object, &[CLASS, MOUNT_OPTIONS], warnings);
    let spec = object.member("spec");
    let policy = spec.member("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        warnings.about(&policy, "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.");
    }
    let terms = spec.at("nodeAffinity.required.nodeSelectorTerms");
    terms.items().for_each(|term| node::term(&term, warnings));
    volume::deprecated(&spec, |name| DEPRECATED.contains(&name), warnings);
}

pub(super) fn claim(claim: &At<'_>, warnings: &mut Warnings) {
    annotations(claim, &[CLASS], warnings);
    claim_spec(&claim.member("spec"), warnings);
}

pub(super) fn claim_spec(spec: &At<'_>, warnings: &mut Warnings) {
    for list in ["requests", "limits"] {
        whole_bytes(&spec.member("resources").member(list), &["storage"], warnings);
    }
}

pub(super) fn class(class: &At<'_>, warnings: &mut Warnings) {
    let topologies = class.member("allowedTopologies");
    for expression in topologies.items().flat_map(|topology| topology.member("matchLabelExpressions").items()) {
        node::key(&expression.member("key"), warnings);
    }
}
