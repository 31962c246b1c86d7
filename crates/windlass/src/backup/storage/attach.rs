//! How a location gets into a Pod, and how a program in the Pod finds it there.
//!
//! A claim is mounted. Of object storage the credentials are, as files, so that they are in no argument, variable or status, and so
//! that new ones count without a restart; what is no secret is in a variable.

use std::env;
use std::path::Path;

use k8s_openapi::api::core::v1::{
    EnvVar, PersistentVolumeClaimVolumeSource, PodSpec, SecretVolumeSource, Volume, VolumeMount,
};

use super::super::location::{Location, S3};
use super::encrypted::Encrypted;
use super::folder::Folder;
use super::keyring::KeyRing;
use super::keys::Keys;
use super::objects::ObjectStorage;
use super::{Storage, StorageError};

/// What the names of variables begin with that say where storage is.
const VARIABLE: &str = "WINDLASS_STORAGE";
/// Who may read credentials in a Pod: its user, by its group.
const MODE: i32 = 0o440;

/// Where a Pod has a location.
#[derive(Clone, Copy, Debug)]
pub struct Attachment<'a> {
    /// The name of its volume.
    pub name: &'a str,
    /// Where it is mounted, such as /archive.
    pub path: &'a str,
    /// Whether nothing is written there.
    pub read_only: bool,
}

impl Location {
    /// Gives the first container of a Pod the location. It opens it with [`open`] and the path.
    pub fn attach(&self, pod: &mut PodSpec, at: Attachment<'_>) {
        let mut volume = Volume { name: at.name.to_owned(), ..Volume::default() };
        let mut read_only = at.read_only;
        if let Some(claim) = &self.claim {
            let source =
                PersistentVolumeClaimVolumeSource { claim_name: claim.name.clone(), read_only: Some(read_only) };
            volume.persistent_volume_claim = Some(source);
        }
        if let Some(s3) = &self.s3 {
            volume.secret = Some(secret(&s3.credentials.secret_name));
            read_only = true;
        }
        pod.volumes.get_or_insert_default().push(volume);
        let Some(container) = pod.containers.first_mut() else { return };
        container.volume_mounts.get_or_insert_default().push(VolumeMount {
            name: at.name.to_owned(),
            mount_path: at.path.to_owned(),
            read_only: read_only.then_some(true),
            ..VolumeMount::default()
        });
        if let Some(encryption) = &self.encryption {
            let (name, path) = (format!("{}-keys", at.name), keys_path(Path::new(at.path)));
            let mount = VolumeMount {
                name: name.clone(),
                mount_path: path.clone(),
                read_only: Some(true),
                ..VolumeMount::default()
            };
            container.volume_mounts.get_or_insert_default().push(mount);
            let variable = EnvVar { name: keys_variable(Path::new(at.path)), value: Some(path), value_from: None };
            container.env.get_or_insert_default().push(variable);
            let secret = Some(secret(&encryption.secret_name));
            pod.volumes.get_or_insert_default().push(Volume { name, secret, ..Volume::default() });
        }
        if let Some(s3) = &self.s3 {
            let value = serde_json::to_string(s3).expect("settings are plain data");
            let variable = EnvVar { name: variable(Path::new(at.path)), value: Some(value), value_from: None };
            container.env.get_or_insert_default().push(variable);
        }
    }
}

fn secret(name: &str) -> SecretVolumeSource {
    SecretVolumeSource { secret_name: Some(name.to_owned()), default_mode: Some(MODE), ..SecretVolumeSource::default() }
}

/// The variable that says what is at a path: `WINDLASS_STORAGE_ARCHIVE` for `/archive`.
fn variable(path: &Path) -> String {
    let name = path.to_string_lossy().to_uppercase();
    VARIABLE.to_owned() + &name.replace(|char: char| !char.is_ascii_alphanumeric(), "_")
}

/// The variable that says where the keys are of what is at a path: if it is there, nothing is stored without.
fn keys_variable(path: &Path) -> String {
    variable(path) + "_KEYS"
}

/// Where the keys are of what is at a path.
fn keys_path(path: &Path) -> String {
    format!("{}-keys", path.display())
}

/// Opens the storage that the Pod of this process has at a path.
///
/// # Errors
/// When its settings cannot be used. Whether it can be reached is seen when it is.
pub fn open(path: &Path) -> Result<Box<dyn Storage>, StorageError> {
    let storage: Box<dyn Storage> = match env::var(variable(path)) {
        Ok(settings) => {
            let settings: S3 = serde_json::from_str(&settings)
                .map_err(|error| StorageError::Settings(format!("{} cannot be read: {error}", variable(path))))?;
            Box::new(ObjectStorage::new(&settings, &Keys::read(path)?)?)
        }
        Err(_) => Box::new(Folder::at(path)),
    };
    match env::var_os(keys_variable(path)) {
        Some(keys) => Ok(Box::new(Encrypted::new(storage, KeyRing::read(Path::new(&keys))?))),
        None => Ok(storage),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(location: serde_json::Value) -> serde_json::Value {
        let location: Location = serde_json::from_value(location).unwrap();
        let mut pod: PodSpec = serde_json::from_value(json!({"containers": [{"name": "a"}]})).unwrap();
        location.attach(&mut pod, Attachment { name: "archive", path: "/archive", read_only: false });
        serde_json::to_value(pod).unwrap()
    }

    #[test]
    fn a_claim_is_mounted() {
        let pod = pod(json!({"claim": {"name": "backups"}}));
        assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "backups");
        assert_eq!(pod["containers"][0]["volumeMounts"], json!([{"name": "archive", "mountPath": "/archive"}]));
        assert!(pod["containers"][0]["env"].is_null(), "a Pod from before there was object storage is the same");
    }

    #[test]
    fn the_keys_of_encryption_are_mounted_beside_it() {
        let pod = pod(json!({"claim": {"name": "backups"}, "encryption": {"secretName": "keys"}}));
        assert_eq!(
            pod["volumes"][1],
            json!({"name": "archive-keys", "secret": {"secretName": "keys", "defaultMode": MODE}})
        );
        assert_eq!(pod["containers"][0]["volumeMounts"][1]["mountPath"], "/archive-keys");
        let told = json!([{"name": "WINDLASS_STORAGE_ARCHIVE_KEYS", "value": "/archive-keys"}]);
        assert_eq!(pod["containers"][0]["env"], told);
    }

    #[test]
    fn of_object_storage_the_credentials_are_mounted_and_the_rest_is_told() {
        let s3 = json!({"endpoint": "https://s3.example.com", "bucket": "backups", "region": "r", "credentials": {"secretName": "key"}});
        let pod = pod(json!({"s3": s3}));
        assert_eq!(pod["volumes"][0]["secret"]["secretName"], "key");
        assert_eq!(pod["containers"][0]["volumeMounts"][0]["readOnly"], true);
        let variable = &pod["containers"][0]["env"][0];
        assert_eq!(variable["name"], "WINDLASS_STORAGE_ARCHIVE");
        assert_eq!(serde_json::from_str::<serde_json::Value>(variable["value"].as_str().unwrap()).unwrap(), s3);
    }
}
