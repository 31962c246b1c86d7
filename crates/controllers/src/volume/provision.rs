//! Volumes made for claims: a directory each, below the one that the cluster keeps for them.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use super::decide::PROVISIONER;
use super::matching;

/// Which provisioner made a volume.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The volume for a claim. Its name follows from the claim, so that it cannot be made twice.
pub(crate) fn volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&Node>,
    directory: &Path,
) -> PersistentVolume {
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let path = directory.join(format!("{name}_{}_{}", claim.namespace().unwrap_or_default(), claim.name_any()));
    let wanted = claim.spec.clone().unwrap_or_default();
    let size = matching::request(claim).cloned().unwrap_or_default();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            capacity: Some([("storage".to_owned(), size)].into()),
            access_modes: wanted.access_modes,
            volume_mode: wanted.volume_mode,
            storage_class_name: Some(class.name_any()),
            persistent_volume_reclaim_policy: Some(class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned())),
            mount_options: class.mount_options.clone(),
            claim_ref: Some(reference(claim)),
            host_path: Some(HostPathVolumeSource {
                path: path.display().to_string(),
                type_: Some("DirectoryOrCreate".to_owned()),
            }),
            node_affinity: node.map(only_on),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// The reference by which a volume belongs to a claim.
pub(crate) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let reference = claim.object_ref(&());
    ObjectReference { resource_version: claim.resource_version(), ..reference }
}

/// Whether we made the volume.
pub(crate) fn is_ours(volume: &PersistentVolume) -> bool {
    volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == PROVISIONER)
}

/// The directory of a volume, if it is one of those in `directory`; others are left alone.
pub(crate) fn place(volume: &PersistentVolume, directory: &Path) -> Option<PathBuf> {
    let source = volume.spec.as_ref()?.host_path.as_ref()?;
    let path = PathBuf::from(&source.path);
    // What ends in `..` has no name.
    (path.parent() == Some(directory) && path.file_name().is_some()).then_some(path)
}

fn only_on(node: &Node) -> VolumeNodeAffinity {
    let host = node.labels().get(HOSTNAME).cloned().unwrap_or_else(|| node.name_any());
    let here =
        NodeSelectorRequirement { key: HOSTNAME.to_owned(), operator: "In".to_owned(), values: Some(vec![host]) };
    let term = NodeSelectorTerm { match_expressions: Some(vec![here]), match_fields: None };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_is_what_its_claim_asks_for() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "data", "namespace": "ns", "uid": "u-1", "resourceVersion": "7"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}}))
        .unwrap();
        let class: StorageClass = serde_json::from_value(
            json!({"metadata": {"name": "standard"}, "provisioner": PROVISIONER, "reclaimPolicy": "Retain"}),
        )
        .unwrap();
        let volume = volume(&claim, &class, None, Path::new("/volumes"));
        assert!(is_ours(&volume) && matching::is_for(&volume, &claim));
        assert_eq!(matching::suits(&claim, &volume), Some("storageClassName does not match"), "the claim named none");
        let spec = volume.spec.unwrap();
        assert_eq!(spec.host_path.unwrap().path, "/volumes/pvc-u-1_ns_data");
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
    }

    #[test]
    fn only_directories_of_volumes_are_ours_to_remove() {
        let check = |path: &str, expect: Option<&str>| {
            let volume = serde_json::from_value(json!({"spec": {"hostPath": {"path": path}}})).unwrap();
            assert_eq!(place(&volume, Path::new("/c/volumes")), expect.map(PathBuf::from), "{path}");
        };
        check("/c/volumes/pvc-1", Some("/c/volumes/pvc-1"));
        check("/c/volumes", None);
        check("/c/volumes/..", None);
        check("/c/volumes/a/b", None);
        check("/etc", None);
    }
}
