//! Volumes: whose they are, and what becomes of them when their claim is gone.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use windlass_runtime::{Action, Attempt, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use super::{VolumeStore, provision};
use crate::actor::{Actor, is_gone};

/// Adds the controller to the manager.
pub(super) fn add(manager: &mut Manager, store: VolumeStore) {
    let volumes = manager.informers().all::<PersistentVolume>();
    let claims = manager.informers().all::<PersistentVolumeClaim>();
    let process = Volumes {
        actor: Actor::new(manager, "persistentvolume-controller"),
        volumes: volumes.clone(),
        claims: claims.clone(),
        store,
    };
    let controller = Controller::keyed(manager, "persistent-volume", process)
        .on(&volumes, |change| [change.key().name])
        .on(&claims, |change| {
            let spec = change.object().spec.as_ref();
            spec.and_then(|spec| spec.volume_name.clone()).filter(|_| change.new.is_none())
        });
    manager.add(controller);
}

struct Volumes {
    actor: Actor,
    volumes: Informer<PersistentVolume>,
    claims: Informer<PersistentVolumeClaim>,
    store: VolumeStore,
}

/// What a volume is to its claim.
#[derive(Debug, PartialEq, Eq)]
enum Tie {
    /// Nobody's, or reserved for a claim that is still to come.
    Free,
    /// Its claim is there.
    Held,
    /// Its claim is gone.
    Released,
}

impl Process for Volumes {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        // One that is being deleted, too: it may go when it says that it is bound no longer.
        let Some(volume) = self.volumes.get(&ObjectKey::cluster(name)) else { return Ok(Action::Await) };
        match self.tie(&volume).await? {
            Tie::Free => drop(super::set_phase(&self.actor, &volume, "Available", None).await?),
            Tie::Held => {}
            Tie::Released => self.reclaim(&volume).await?,
        }
        Ok(Action::Await)
    }
}

impl Volumes {
    async fn tie(&self, volume: &PersistentVolume) -> Result<Tie, Error> {
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let uid = reference.and_then(|reference| reference.uid.clone()).filter(|uid| !uid.is_empty());
        let (Some(reference), Some(uid)) = (reference, uid) else { return Ok(Tie::Free) };
        if self.claims.by_uid(&uid).is_some() {
            return Ok(Tie::Held);
        }
        // Data is at stake: the cache alone is not believed.
        let name = reference.name.clone().unwrap_or_default();
        let api = self.actor.api::<PersistentVolumeClaim>(reference.namespace.as_deref());
        let live = api.get_metadata_opt(&name).await?;
        match live.is_some_and(|live| live.metadata.uid.as_deref() == Some(&uid)) {
            true => Ok(Tie::Held),
            false => Ok(Tie::Released),
        }
    }

    async fn reclaim(&self, volume: &PersistentVolume) -> Result<(), Error> {
        let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
        if policy == Some("Delete") && provision::is_ours(volume) {
            super::set_phase(&self.actor, volume, "Released", None).await?;
            return self.delete(volume).await;
        }
        let problem = match policy {
            Some("Delete") => Some("nobody here can delete this volume; delete it by hand"),
            Some("Recycle") => Some("volumes are not recycled; delete it by hand"),
            _ => None,
        };
        let Some(problem) = problem else {
            super::set_phase(&self.actor, volume, "Released", None).await?;
            return Ok(());
        };
        if volume.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Failed") {
            self.actor.tell(volume, Event::warning("VolumeFailedDelete", problem));
        }
        super::set_phase(&self.actor, volume, "Failed", Some(problem.to_owned())).await?;
        Ok(())
    }

    /// The data first: a volume whose object is gone would leave it behind.
    async fn delete(&self, volume: &PersistentVolume) -> Result<(), Error> {
        let (place, remove) = (provision::place(volume, &self.store.directory), self.store.remove);
        let remove = move || place.filter(|place| place.exists()).map_or(Ok(()), |place| remove(&place));
        let removed = tokio::task::spawn_blocking(remove).await;
        let problem = match removed {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            self.actor.tell(volume, Event::warning("VolumeFailedDelete", problem.clone()));
            super::set_phase(&self.actor, volume, "Failed", Some(problem.clone())).await?;
            return Err(Error::failed(problem));
        }
        let preconditions = Preconditions { uid: volume.uid(), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match super::volumes(&self.actor).delete(&volume.name_any(), &params).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }
}
