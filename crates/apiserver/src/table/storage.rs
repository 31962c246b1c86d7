//! Volumes, claims, classes.

use serde_json::Value;

use super::{
    network::default_name,
    view::{NONE, UNSET, View, list, scalar, text},
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The cells of a PersistentVolume.
pub(super) fn volume(view: &View<'_>) -> Vec<Value> {
    let claim = view.at("spec.claimRef");
    let claim =
        if claim.is_null() { String::new() } else { format!("{}/{}", text(claim, "namespace"), text(claim, "name")) };
    vec![
        view.name().into(),
        scalar(view.at("spec.capacity.storage")).into(),
        access_modes(view.list("spec.accessModes")).into(),
        view.text("spec.persistentVolumeReclaimPolicy").into(),
        phase(view).into(),
        claim.into(),
        class(view).into(),
        view.text_or("spec.volumeAttributesClassName", UNSET).into(),
        view.text("status.reason").into(),
        view.age().into(),
        view.text_or("spec.volumeMode", UNSET).into(),
    ]
}

/// The cells of a PersistentVolumeClaim.
pub(super) fn claim(view: &View<'_>) -> Vec<Value> {
    let bound = !view.text("spec.volumeName").is_empty();
    let when_bound = |text: String| if bound { text } else { String::new() };
    vec![
        view.name().into(),
        phase(view).into(),
        view.text("spec.volumeName").into(),
        when_bound(scalar(view.at("status.capacity.storage"))).into(),
        when_bound(access_modes(view.list("status.accessModes"))).into(),
        class(view).into(),
        view.text_or("spec.volumeAttributesClassName", UNSET).into(),
        view.age().into(),
        view.text_or("spec.volumeMode", UNSET).into(),
    ]
}

fn phase<'a>(view: &View<'a>) -> &'a str {
    if view.deleting() { "Terminating" } else { view.text("status.phase") }
}

fn class<'a>(view: &View<'a>) -> &'a str {
    let annotated = view.at("metadata.annotations").get(CLASS_ANNOTATION).and_then(Value::as_str);
    annotated.unwrap_or_else(|| view.text("spec.storageClassName"))
}

fn access_modes(modes: &[Value]) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| modes.iter().any(|given| given.as_str() == Some(mode));
    known.into_iter().filter(|(mode, _)| has(mode)).map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// The cells of a StorageClass.
pub(super) fn storage_class(view: &View<'_>) -> Vec<Value> {
    vec![
        default_name(view, "storageclass.kubernetes.io/is-default-class").into(),
        view.text("provisioner").into(),
        view.text_or("reclaimPolicy", "Delete").into(),
        view.text_or("volumeBindingMode", "Immediate").into(),
        view.truth("allowVolumeExpansion").into(),
        view.age().into(),
    ]
}

/// The cells of a VolumeAttributesClass.
pub(super) fn attributes_class(view: &View<'_>) -> Vec<Value> {
    let name = default_name(view, "volumeattributesclass.kubernetes.io/is-default-class");
    vec![name.into(), view.text("driverName").into(), view.age().into()]
}

/// The cells of a VolumeAttachment.
pub(super) fn attachment(view: &View<'_>) -> Vec<Value> {
    vec![
        view.name().into(),
        view.text("spec.attacher").into(),
        view.text("spec.source.persistentVolumeName").into(),
        view.text("spec.nodeName").into(),
        view.truth("status.attached").into(),
        view.age().into(),
    ]
}

/// The cells of a CSINode.
pub(super) fn csi_node(view: &View<'_>) -> Vec<Value> {
    vec![view.name().into(), view.count("spec.drivers").into(), view.age().into()]
}

/// The cells of a CSIDriver.
pub(super) fn csi_driver(view: &View<'_>) -> Vec<Value> {
    let modes: Vec<String> = view.list("spec.volumeLifecycleModes").iter().map(scalar).collect();
    let audiences: Vec<&str> =
        list(view.object, "spec.tokenRequests").iter().map(|request| text(request, "audience")).collect();
    vec![
        view.name().into(),
        view.at("spec.attachRequired").as_bool().unwrap_or(true).into(),
        view.truth("spec.podInfoOnMount").into(),
        view.truth("spec.storageCapacity").into(),
        if view.at("spec.tokenRequests").is_null() { UNSET.to_owned() } else { audiences.join(",") }.into(),
        view.truth("spec.requiresRepublish").into(),
        if modes.is_empty() { NONE.to_owned() } else { modes.join(",") }.into(),
        view.age().into(),
    ]
}

/// The cells of a CSIStorageCapacity.
pub(super) fn storage_capacity(view: &View<'_>) -> Vec<Value> {
    let capacity =
        Some(scalar(view.at("capacity"))).filter(|text| !text.is_empty()).unwrap_or_else(|| UNSET.to_owned());
    vec![view.name().into(), view.text("storageClassName").into(), capacity.into()]
}
