//! Persistent volumes: what they can hold, where they can be used, and what of them stays as it is.

use serde_json::Value;

use super::cursor::{At, one_of, required, required_name};
use super::storage::{self, access_modes};
use super::{affinity, path, volume};
use crate::{FieldError, names, quantity};

/// The sources of persistent volumes, in the order in which they are looked for, with what they cannot do without.
const SOURCES: [(&str, &[&str]); 22] = [
    ("hostPath", &["path"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("nfs", &["server", "path"]),
    ("rbd", &["monitors", "image"]),
    ("quobyte", &["volume"]),
    ("cephfs", &["monitors"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("cinder", &["volumeID"]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("local", &["path"]),
    ("storageos", &["volumeName"]),
    ("csi", &["volumeHandle"]),
];
/// The Secrets that a driver may be given.
const DRIVER_SECRETS: [&str; 4] =
    ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"];

/// Checks a persistent volume.
pub(super) fn check(volume: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = volume.member("spec");
    access_modes(&spec, "", errors);
    capacity(&spec.member("capacity"), errors);
    let reclaim = spec.member("persistentVolumeReclaimPolicy");
    one_of(&reclaim, &["Delete", "Recycle", "Retain"], errors);
    node_affinity(&spec.member("nodeAffinity"), errors);
    source(&spec, errors);
    if is_root(spec.at("hostPath.path").text()) && reclaim.text() == "Recycle" {
        errors.push(reclaim.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    storage::class_name(&spec.member("storageClassName"), errors);
    one_of(&spec.member("volumeMode"), &["Block", "Filesystem"], errors);
    attributes_class(&spec, errors);
    if let Some(old) = old {
        unchanged(&spec, &old.member("spec"), errors);
    }
}

fn capacity(capacity: &At<'_>, errors: &mut Vec<FieldError>) {
    required(capacity, errors);
    let entries = capacity.value.as_object().map_or(0, serde_json::Map::len);
    if entries != 1 || capacity.value.get("storage").is_none() {
        errors.push(FieldError::not_supported(capacity.path.clone(), capacity.value.clone(), &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        let nanos = quantity::nanos(amount.text()).unwrap_or_default();
        if nanos < 0 {
            errors.push(amount.invalid("must be a valid resource quantity"));
        }
        if nanos <= 0 {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

fn node_affinity(affinity: &At<'_>, errors: &mut Vec<FieldError>) {
    let needed = affinity.member("required");
    match (affinity.is_set(), needed.is_set()) {
        (true, true) => affinity::node_selector(&needed, errors),
        (true, false) => errors.push(needed.missing("must specify required node constraints")),
        (false, _) => {}
    }
}

/// A volume has one source; only the first is looked at.
fn source(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let mut sources = SOURCES.iter().map(|(name, needs)| (spec.member(name), *name, *needs));
    let mut sources = sources.by_ref().filter(|(source, ..)| source.is_set());
    let Some((first, name, needs)) = sources.next() else {
        return errors.push(spec.missing("must specify a volume type"));
    };
    volume::needs(&first, needs, errors);
    inside(name, &first, spec, errors);
    errors.extend(sources.map(|(source, ..)| source.forbidden("may not specify more than 1 volume type")));
}

fn inside(name: &str, source: &At<'_>, spec: &At<'_>, errors: &mut Vec<FieldError>) {
    match name {
        "local" => {
            path::without_steps_back(&source.member("path"), errors);
            let affinity = spec.member("nodeAffinity");
            if !affinity.is_set() {
                errors.push(affinity.missing("Local volume requires node affinity"));
            }
        }
        "csi" => {
            volume::driver(&source.member("driver"), errors);
            let secrets = DRIVER_SECRETS.map(|name| source.member(name));
            secrets.iter().filter(|secret| secret.is_set()).for_each(|secret| driver_secret(secret, errors));
        }
        "cinder" | "storageos" if source.member("secretRef").is_set() => {
            ["name", "namespace"].iter().for_each(|name| required(&source.member("secretRef").member(name), errors));
        }
        _ => volume::inside(name, source, false, errors),
    }
}

fn driver_secret(secret: &At<'_>, errors: &mut Vec<FieldError>) {
    required_name(&secret.member("name"), names::subdomain, errors);
    required_name(&secret.member("namespace"), names::label, errors);
}

fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| part.is_empty() || part == ".")
}

fn attributes_class(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let class = spec.member("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.is_absent() {
        errors.push(class.missing("an empty string is disallowed"));
    }
    storage::class_name(&class, errors);
    let driver = spec.member("csi");
    if !driver.is_set() {
        errors.push(driver.missing("has to be specified when using volumeAttributesClassName"));
    }
}

/// What holds the data stays as it is, and so does where it is, once that is said. Errors name members without their `spec`.
fn unchanged(spec: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if holders(spec.value, old.value) != holders(old.value, old.value) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    let (mode, affinity) = (spec.member("volumeMode"), spec.member("nodeAffinity"));
    if mode.value != old.member("volumeMode").value {
        errors.push(mode.renamed("volumeMode").invalid("field is immutable"));
    }
    let old_affinity = old.member("nodeAffinity");
    if old_affinity.is_set() && affinity.value != old_affinity.value {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(affinity.renamed("nodeAffinity").invalid(detail));
    }
    let class = spec.member("volumeAttributesClassName");
    if old.member("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// The sources of a volume; a driver that had no Secret to expand it may get one.
fn holders(spec: &Value, old: &Value) -> Vec<Value> {
    let mut holders: Vec<Value> = SOURCES.iter().map(|(name, _)| spec[*name].clone()).collect();
    let had_none = old["csi"].is_object() && old["csi"]["controllerExpandSecretRef"].is_null();
    if let Some(Value::Object(driver)) = holders.last_mut().filter(|_| had_none) {
        driver.remove("controllerExpandSecretRef");
    }
    holders
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::check_update;

    const KIND: (&str, &str, &str) = ("", "v1", "PersistentVolume");

    fn volume(change: Value) -> Value {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}
        });
        for (name, value) in change.as_object().unwrap() {
            spec[name] = value.clone();
        }
        json!({"metadata": {"name": "a"}, "spec": spec})
    }

    fn check(change: Value, expect: &[&str]) {
        check_update(KIND, None, volume(change), expect);
    }

    #[test]
    fn a_volume_says_how_much_it_holds_and_where() {
        check(json!({}), &[]);
        check(json!({"accessModes": null}), &["spec.accessModes: Required value"]);
        check(
            json!({"capacity": {"storage": "0"}}),
            &[r#"spec.capacity[storage]: Invalid value: "0": must be greater than zero"#],
        );
        check(json!({"hostPath": null}), &["spec: Required value: must specify a volume type"]);
        check(
            json!({"nfs": {"server": "s", "path": "/"}}),
            &["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        );
        check(
            json!({"hostPath": {"path": "/a/../b"}}),
            &[r#"spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'"#],
        );
        check(
            json!({"hostPath": {"path": "//."}, "persistentVolumeReclaimPolicy": "Recycle"}),
            &["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        );
    }

    #[test]
    fn sources_say_what_they_need() {
        check(json!({"hostPath": null, "rbd": {"image": "i"}}), &["spec.rbd.monitors: Required value"]);
        check(
            json!({"hostPath": null, "local": {"path": "/d"}}),
            &["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        );
        check(
            json!({"hostPath": null, "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}),
            &["spec.csi.volumeHandle: Required value", "spec.csi.nodePublishSecretRef.namespace: Required value"],
        );
        check(
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}),
            &[
                "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term",
            ],
        );
        check(
            json!({"nodeAffinity": {}}),
            &["spec.nodeAffinity.required: Required value: must specify required node constraints"],
        );
    }

    #[test]
    fn what_holds_the_data_stays() {
        let refused = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation";
        let old = volume(json!({}));
        check_update(KIND, Some(old.clone()), volume(json!({"hostPath": {"path": "/other"}})), &[refused]);
        check_update(KIND, Some(old), volume(json!({"capacity": {"storage": "2Gi"}})), &[]);
        let driver = |more: Value| {
            let mut csi = json!({"driver": "d", "volumeHandle": "h"});
            csi["controllerExpandSecretRef"] = more;
            volume(json!({"hostPath": null, "csi": csi}))
        };
        let secret = json!({"name": "s", "namespace": "n"});
        check_update(KIND, Some(driver(Value::Null)), driver(secret.clone()), &[]);
        check_update(KIND, Some(driver(secret)), driver(Value::Null), &[refused]);
    }
}
