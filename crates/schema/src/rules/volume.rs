//! The volumes of a Pod.

use std::collections::HashMap;

use serde_json::Value;

use super::cursor::{At, follows, named, required, required_name, set_one_of};
use super::{container, path, projection, storage};
use crate::{FieldError, names, quantity};

/// The sources of volumes, in the order in which they are looked for, with what they cannot do without.
const SOURCES: [(&str, &[&str]); 30] = [
    ("emptyDir", &[]),
    ("hostPath", &["path"]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &["volume"]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &["volumeName"]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &[]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("image", &[]),
];
const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const MODE_MAX: i64 = 0o777;
const DRIVER_BYTES_MAX: usize = 63;

/// Checks the volumes of the Pod with this name, or of a template; those in which nothing is wrong, by name.
pub(super) fn check<'a>(
    volumes: &At<'a>,
    pod: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> HashMap<&'a str, &'a Value> {
    let mut sound = HashMap::new();
    let pod = pod.filter(|name| !name.is_empty());
    let made = |volume: At<'_>| volume.member("ephemeral").is_set().then(|| volume.member("name").text().to_owned());
    let made: Vec<String> = volumes.items().filter_map(made).collect();
    for volume in volumes.items() {
        let before = errors.len();
        source(&volume, pod, errors);
        let name = volume.member("name");
        required_name(&name, names::label, errors);
        if sound.contains_key(name.text()) {
            errors.push(name.again());
        }
        if errors.len() == before {
            sound.insert(name.text(), volume.value);
        }
        let claim = volume.at("persistentVolumeClaim.claimName");
        if pod.is_some_and(|pod| made.iter().any(|name| claim.text() == format!("{pod}-{name}"))) {
            errors.push(claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    sound
}

/// A volume has one source; only the first is looked at.
fn source(volume: &At<'_>, pod: Option<&str>, errors: &mut Vec<FieldError>) {
    let mut sources = SOURCES.iter().map(|(name, needs)| (volume.member(name), *name, *needs));
    let mut sources = sources.by_ref().filter(|(source, ..)| source.is_set());
    let Some((first, name, needs)) = sources.next() else {
        return errors.push(volume.missing("must specify a volume type"));
    };
    self::needs(&first, needs, errors);
    inside(name, &first, pod.is_some(), errors);
    errors.extend(sources.map(|(source, ..)| source.forbidden("may not specify more than 1 volume type")));
    let volume_name = volume.member("name");
    if let (Some(pod), "ephemeral") = (pod, name)
        && !volume_name.is_absent()
    {
        let claim = format!("{pod}-{}", volume_name.text());
        let wrong = names::subdomain(&claim).into_iter();
        errors.extend(wrong.map(|detail| volume_name.invalid(format!("PVC name {claim:?}: {detail}"))));
    }
}

/// What a source cannot do without.
pub(super) fn needs(source: &At<'_>, needs: &[&str], errors: &mut Vec<FieldError>) {
    for need in needs.iter().map(|name| source.member(name)).filter(At::is_absent) {
        // A disk of Google's has a name of its own in errors.
        let path = need.path.replace(".gcePersistentDisk.", ".persistentDisk.");
        errors.push(FieldError::required(path, ""));
    }
}

/// What is in the source of a volume, apart from what is missing.
pub(super) fn inside(name: &str, source: &At<'_>, is_pod: bool, errors: &mut Vec<FieldError>) {
    match name {
        "emptyDir" => {
            let size = source.member("sizeLimit");
            if quantity::nanos(size.text()).is_some_and(|nanos| nanos < 0) {
                errors.push(size.forbidden("SizeLimit field must be a valid resource quantity"));
            }
        }
        "hostPath" if !source.member("path").is_absent() => {
            path::without_steps_back(&source.member("path"), errors);
            set_one_of(&source.member("type"), &HOST_PATHS, errors);
        }
        "gitRepo" => path::descending(&source.member("directory"), errors),
        "secret" | "configMap" => {
            mode(&source.member("defaultMode"), errors);
            source.member("items").items().for_each(|item| key_to_path(&item, errors));
        }
        "nfs" if !source.member("path").text().starts_with('/') => {
            errors.push(source.member("path").wrong_text("must be an absolute path"));
        }
        "downwardAPI" => {
            mode(&source.member("defaultMode"), errors);
            source.member("items").items().for_each(|file| projection::pod_file(&file, &source.path, errors));
        }
        "projected" => {
            mode(&source.member("defaultMode"), errors);
            projection::check(source, errors);
        }
        "iscsi" => iscsi(source, errors),
        "csi" => csi(source, errors),
        "ephemeral" => claim_template(&source.member("volumeClaimTemplate"), errors),
        "image" => {
            if is_pod {
                required(&source.member("reference"), errors);
            }
            container::pull_policy(&source.member("pullPolicy"), errors);
        }
        "cinder" | "storageos" if source.member("secretRef").is_set() => {
            required(&source.at("secretRef.name"), errors);
        }
        _ => {}
    }
}

/// Checks the mode of files.
pub(super) fn mode(mode: &At<'_>, errors: &mut Vec<FieldError>) {
    if mode.int().is_some_and(|mode| !(0..=MODE_MAX).contains(&mode)) {
        errors.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

/// Checks which key becomes which file.
pub(super) fn key_to_path(item: &At<'_>, errors: &mut Vec<FieldError>) {
    required(&item.member("key"), errors);
    required(&item.member("path"), errors);
    path::unreserved(&item.member("path"), errors);
    mode(&item.member("mode"), errors);
}

fn iscsi(source: &At<'_>, errors: &mut Vec<FieldError>) {
    let (name, unit) = (source.member("iqn"), source.member("lun"));
    if !name.is_absent() && !["iqn", "eui", "naa"].iter().any(|start| name.text().starts_with(start)) {
        errors.push(name.invalid("must be valid format starting with iqn, eui, or naa"));
    }
    if unit.int().is_some_and(|unit| !(0..=255).contains(&unit)) {
        errors.push(unit.invalid("must be between 0 and 255, inclusive"));
    }
}

fn csi(source: &At<'_>, errors: &mut Vec<FieldError>) {
    driver(&source.member("driver"), errors);
    let secret = source.member("nodePublishSecretRef");
    if secret.is_set() {
        let name = secret.member("name");
        required(&name, errors);
        // A name that is wrong is named as if it were the source's.
        named(&name.renamed(source.member("name").path), names::subdomain, errors);
    }
}

/// Checks the name of a driver.
pub(super) fn driver(driver: &At<'_>, errors: &mut Vec<FieldError>) {
    required(driver, errors);
    if driver.text().len() > DRIVER_BYTES_MAX {
        errors.push(FieldError::too_long(driver.path.clone(), DRIVER_BYTES_MAX as u64));
    }
    if !driver.is_absent() {
        follows(driver, |name| names::subdomain(&name.to_lowercase()), errors);
    }
}

fn claim_template(template: &At<'_>, errors: &mut Vec<FieldError>) {
    if !template.is_set() {
        return;
    }
    let metadata = template.member("metadata");
    super::metadata::annotations(&metadata.member("annotations"), errors);
    super::metadata::labels(&metadata.member("labels"), errors);
    let others = metadata.value.as_object().into_iter().flatten().map(|(name, _)| metadata.member(name));
    let others = others.filter(|other| !other.is_absent());
    let others = others.filter(|other| !["labels", "annotations"].iter().any(|name| other.path.ends_with(name)));
    errors.extend(others.map(|other| other.forbidden("cannot be set")));
    storage::claim_spec(&template.member("spec"), errors);
}
