//! Persistent volumes: claims are bound to volumes or get one made, volumes are reclaimed, and what is in use stays.

mod claims;
mod class;
mod decide;
mod ephemeral;
mod matching;
mod protection;
mod provision;
mod reclaim;

use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt};
use windlass_runtime::Manager;

use crate::actor::Actor;

pub(crate) use decide::{SELECTED_NODE, is_bound, is_delayed};
pub(crate) use matching::{best, claim_class, reaches};
pub(crate) use protection::claims_of;

/// Where volumes are said to be in a cluster that keeps none: its Pods only seem to run.
const NOWHERE: &str = "/var/lib/windlass/volumes";

/// Where persistent volumes are kept: a directory for each, which the node makes when it is first used.
#[derive(Clone, Debug)]
pub struct VolumeStore {
    /// The directory that holds those of the volumes.
    pub directory: PathBuf,
    /// Removes the directory of a volume with all that programs left there.
    pub remove: fn(&Path) -> io::Result<()>,
}

impl VolumeStore {
    fn nowhere() -> Self {
        Self { directory: PathBuf::from(NOWHERE), remove: |_| Ok(()) }
    }
}

/// Adds the controllers to the manager; volumes are kept in `store`, if there is one.
pub(crate) fn add(manager: &mut Manager, store: Option<VolumeStore>) {
    let store = store.unwrap_or_else(VolumeStore::nowhere);
    class::add(manager);
    claims::add(manager, store.directory.clone());
    reclaim::add(manager, store);
    protection::add(manager);
    ephemeral::add(manager);
}

fn volumes(actor: &Actor) -> Api<PersistentVolume> {
    Api::all(actor.client.clone())
}

/// Replaces a volume that has not changed since it was read.
async fn replace(actor: &Actor, volume: &PersistentVolume) -> Result<PersistentVolume, kube::Error> {
    let mut volume = volume.clone();
    volume.metadata.managed_fields = None;
    volumes(actor).replace(&volume.name_any(), &actor.post(), &volume).await
}

/// Writes the phase of a volume, if it is another one.
async fn set_phase(
    actor: &Actor,
    volume: &PersistentVolume,
    phase: &str,
    message: Option<String>,
) -> Result<PersistentVolume, kube::Error> {
    let mut volume = volume.clone();
    let status = volume.status.get_or_insert_default();
    if status.phase.as_deref() == Some(phase) && status.message == message {
        return Ok(volume);
    }
    if status.phase.as_deref() != Some(phase) {
        status.last_phase_transition_time = Some(Time(actor.clock.now()));
    }
    status.phase = Some(phase.to_owned());
    status.message = message;
    volume.metadata.managed_fields = None;
    volumes(actor).replace_status(&volume.name_any(), &actor.post(), &volume).await
}
