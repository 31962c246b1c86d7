//! Volumes of a Pod: directories on the host that its containers mount.

mod atomic;
mod payload;
mod size;
mod token;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{HostPathVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kube::{Api, Client, ResourceExt};

use crate::pod::{Addresses, Sources};
use crate::remains;

pub(crate) use payload::PayloadError;
pub(crate) use size::size;
pub(crate) use token::Tokens;

/// Why a volume cannot be used yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeError {
    #[error("MountVolume.SetUp failed for volume \"{volume}\": {source}")]
    Payload { volume: String, source: PayloadError },
    #[error("MountVolume.SetUp failed for volume \"{volume}\": {source}")]
    Io { volume: String, source: io::Error },
    #[error("MountVolume.SetUp failed for volume \"{volume}\": hostPath {path:?} {problem}")]
    HostPath { volume: String, path: String, problem: &'static str },
    #[error("persistentvolumeclaim \"{claim}\" of volume \"{volume}\" {problem}")]
    Claim { volume: String, claim: String, problem: String },
    #[error(
        "volume \"{volume}\" has a type that this node does not support; emptyDir, configMap, secret, projected, downwardAPI, hostPath, image, ephemeral and claims of local volumes are"
    )]
    Unsupported { volume: String },
}

/// What volumes are made from.
pub(crate) struct Supplies<'a> {
    pub(crate) client: &'a Client,
    pub(crate) sources: &'a Sources,
    pub(crate) addresses: Addresses,
    pub(crate) tokens: &'a mut Tokens,
    /// Where volumes go that are to be in memory.
    pub(crate) memory: PathBuf,
}

/// Makes every volume of a Pod below `directory`, or brings it up to date; where each is.
pub(crate) async fn prepare(
    pod: &Pod,
    directory: &Path,
    supplies: &mut Supplies<'_>,
) -> Result<BTreeMap<String, PathBuf>, VolumeError> {
    let mut places = BTreeMap::new();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    // The files of an image are there when it is, which each container sees to.
    for volume in volumes.filter(|volume| volume.image.is_none()) {
        let place = prepare_one(pod, volume, &directory.join(&volume.name), supplies).await?;
        places.insert(volume.name.clone(), place);
    }
    Ok(places)
}

/// True for volumes that containers only read: images, those whose content the node writes, and claims that say so.
pub(crate) fn is_read_only(volume: &Volume) -> bool {
    is_payload(volume)
        || volume.image.is_some()
        || volume.persistent_volume_claim.as_ref().is_some_and(|source| source.read_only == Some(true))
}

/// True for volumes whose content the node writes.
fn is_payload(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some()
}

async fn prepare_one(
    pod: &Pod,
    volume: &Volume,
    place: &Path,
    supplies: &mut Supplies<'_>,
) -> Result<PathBuf, VolumeError> {
    let io_error = |source| VolumeError::Io { volume: volume.name.clone(), source };
    if is_payload(volume) {
        let tokens = supplies.tokens.for_volume(supplies.client, pod, volume).await;
        let material =
            payload::Material { pod, sources: supplies.sources, addresses: supplies.addresses, tokens: &tokens };
        let mut files = payload::files(volume, &material)
            .map_err(|source| VolumeError::Payload { volume: volume.name.clone(), source })?;
        let group = shared_group(pod);
        if group.is_some() {
            files.values_mut().for_each(|(_, mode)| *mode |= GROUP_READS);
        }
        atomic::write(place, &files).map_err(io_error)?;
        group.map_or(Ok(()), |group| give_tree(place, group)).map_err(io_error)?;
        return Ok(place.to_owned());
    }
    if let Some(source) = &volume.empty_dir {
        let in_memory = source.medium.as_deref() == Some("Memory") && remains::has_memory();
        let place = if in_memory { supplies.memory.join(&volume.name) } else { place.to_owned() };
        make(pod, &place).map_err(io_error)?;
        return Ok(place);
    }
    if let Some(source) = &volume.host_path {
        return host_path(&volume.name, source);
    }
    if let Some(source) = &volume.persistent_volume_claim {
        return claim(pod, &volume.name, &source.claim_name, supplies.client).await;
    }
    if volume.ephemeral.is_some() {
        let name = format!("{}-{}", pod.name_any(), volume.name);
        return claim(pod, &volume.name, &name, supplies.client).await;
    }
    Err(VolumeError::Unsupported { volume: volume.name.clone() })
}

/// Makes the directory of a volume. Only at first: afterwards its mode is the program's business.
fn make(pod: &Pod, place: &Path) -> io::Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(place)?;
    fs::set_permissions(place, Permissions::from_mode(0o777))?;
    share(pod, place)
}

/// What the group of a volume may do with files that the node writes, and with folders: new ones are the group's, too.
const GROUP_READS: u32 = 0o440;
const GROUP_ENTERS: u32 = 0o2550;
const GROUP_WRITES: u32 = 0o2770;

/// The `fsGroup` of a Pod, where this process may give files away.
fn shared_group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let group = context.and_then(|context| context.fs_group).and_then(|group| u32::try_from(group).ok());
    group.filter(|_| crate::sys::effective_ids().0 == 0)
}

/// Gives the top of a volume to the Pod's `fsGroup`.
fn share(pod: &Pod, place: &Path) -> io::Result<()> {
    let Some(group) = shared_group(pod) else { return Ok(()) };
    chown(place, None, Some(group))?;
    let mode = fs::metadata(place)?.permissions().mode();
    fs::set_permissions(place, Permissions::from_mode(mode | GROUP_WRITES))
}

/// Gives everything below a folder to a group, which may read it.
fn give_tree(place: &Path, group: u32) -> io::Result<()> {
    lchown(place, None, Some(group))?;
    if !fs::symlink_metadata(place)?.is_dir() {
        return Ok(());
    }
    let mode = fs::metadata(place)?.permissions().mode();
    fs::set_permissions(place, Permissions::from_mode(mode | GROUP_ENTERS))?;
    fs::read_dir(place)?.try_for_each(|entry| give_tree(&entry?.path(), group))
}

fn host_path(volume: &str, source: &HostPathVolumeSource) -> Result<PathBuf, VolumeError> {
    let path = PathBuf::from(&source.path);
    let fail = |problem| Err(VolumeError::HostPath { volume: volume.to_owned(), path: source.path.clone(), problem });
    let io_error = |source| VolumeError::Io { volume: volume.to_owned(), source };
    match source.type_.as_deref().unwrap_or_default() {
        "DirectoryOrCreate" => fs::create_dir_all(&path).map_err(io_error)?,
        "FileOrCreate" if !path.exists() => fs::write(&path, "").map_err(io_error)?,
        "Directory" if !path.is_dir() => return fail("is not a directory"),
        "File" if !path.is_file() => return fail("is not a file"),
        _ if !path.exists() => return fail("does not exist"),
        _ => {}
    }
    Ok(path)
}

/// The directory of a bound claim.
async fn claim(pod: &Pod, volume: &str, name: &str, client: &Client) -> Result<PathBuf, VolumeError> {
    let fail = |problem: String| VolumeError::Claim { volume: volume.to_owned(), claim: name.to_owned(), problem };
    let namespace = pod.namespace().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    let claim = claims.get(name).await.map_err(|error| fail(format!("cannot be read: {error}")))?;
    let bound = claim.spec.and_then(|spec| spec.volume_name).ok_or_else(|| fail("is not bound".to_owned()))?;
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let bound = volumes.get(&bound).await.map_err(|error| fail(format!("has no volume: {error}")))?;
    let spec = bound.spec.unwrap_or_default();
    let path = spec.host_path.map(|source| source.path).or_else(|| spec.local.map(|source| source.path));
    let path = PathBuf::from(path.ok_or_else(|| fail("is bound to a volume that is not on this machine".to_owned()))?);
    make(pod, &path).map_err(|source| VolumeError::Io { volume: volume.to_owned(), source })?;
    Ok(path)
}
