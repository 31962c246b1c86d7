//! Claims, bound to volumes: both sides written in an order that a crash cannot spoil.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use super::decide::{self, BIND_COMPLETED, SELECTED_NODE, Step, Surroundings};
use super::{matching, provision};
use crate::actor::{Actor, exists_already};
use crate::quantity::Amount;

/// Says that the controller, not a person, chose the volume.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Tells another provisioner that the claim is its.
const PROVISIONER_MARKS: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];

/// Adds the controller to the manager.
pub(super) fn add(manager: &mut Manager, directory: PathBuf) {
    let claims = manager.informers().all::<PersistentVolumeClaim>();
    let volumes = manager.informers().all::<PersistentVolume>();
    let classes = manager.informers().all::<StorageClass>();
    let nodes = manager.informers().all::<Node>();
    let process = Claims {
        actor: Actor::new(manager, "persistentvolume-controller"),
        claims: claims.clone(),
        volumes: volumes.clone(),
        classes: classes.clone(),
        nodes: nodes.clone(),
        directory,
    };
    let (for_volume, for_class) = (claims.clone(), claims.clone());
    let controller = Controller::keyed(manager, "persistent-volume-claim", process)
        .on(&claims, |change| [change.key()])
        .on(&volumes, move |change| concerned(change, &for_volume))
        .on(&classes, move |_| pending(&for_class))
        .on(&nodes, |_| None);
    manager.add(controller);
}

/// The claim of a volume, and all that look for one when it is free.
fn concerned(change: &Change<PersistentVolume>, claims: &Informer<PersistentVolumeClaim>) -> Vec<ObjectKey> {
    let reference = |volume: &Arc<PersistentVolume>| {
        let reference = volume.spec.as_ref()?.claim_ref.as_ref()?;
        Some(ObjectKey { namespace: reference.namespace.clone(), name: reference.name.clone()? })
    };
    let of: Vec<ObjectKey> = change.states().filter_map(reference).collect();
    let named = claims.filter(|claim| {
        let name = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref());
        name == Some(&change.key().name)
    });
    let named = named.iter().map(|claim| ObjectKey::of(&**claim));
    match change.new.as_ref().is_some_and(|volume| reference(volume).is_none()) {
        true => of.into_iter().chain(named).chain(pending(claims)).collect(),
        false => of.into_iter().chain(named).collect(),
    }
}

fn pending(claims: &Informer<PersistentVolumeClaim>) -> Vec<ObjectKey> {
    let is_pending = |claim: &PersistentVolumeClaim| claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_none());
    claims.filter(is_pending).iter().map(|claim| ObjectKey::of(&**claim)).collect()
}

struct Claims {
    actor: Actor,
    claims: Informer<PersistentVolumeClaim>,
    volumes: Informer<PersistentVolume>,
    classes: Informer<StorageClass>,
    nodes: Informer<Node>,
    directory: PathBuf,
}

impl Process for Claims {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let claim = self.claims.get(key).filter(|claim| claim.metadata.deletion_timestamp.is_none());
        let Some(claim) = claim else { return Ok(Action::Await) };
        let volumes = self.volumes.all();
        let class = matching::claim_class(&claim).and_then(|name| self.classes.get(&ObjectKey::cluster(name)));
        let node = claim.annotations().get(SELECTED_NODE).and_then(|name| self.nodes.get(&ObjectKey::cluster(name)));
        let around = Surroundings {
            volumes: volumes.iter().map(|volume| &**volume).collect(),
            class: class.as_deref(),
            node: node.as_deref(),
        };
        match decide::next(&claim, &around) {
            Step::Wait { reason, message, is_warning } => {
                self.actor.tell(
                    &*claim,
                    if is_warning { Event::warning(reason, message) } else { Event::normal(reason, message) },
                );
                self.set_status(&claim, status(&claim, "Pending", None)).await?;
            }
            Step::Bind(volume) => self.bind(&claim, volume, class.as_deref()).await?,
            Step::Provision(class) => self.provision(&claim, class, node.as_deref()).await?,
            Step::Delegate(class) => self.delegate(&claim, class).await?,
            Step::Lose { reason, message } => {
                let lost = status(&claim, "Lost", None);
                if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Lost") {
                    self.actor.tell(&*claim, Event::warning(reason, message));
                }
                self.set_status(&claim, lost).await?;
            }
        }
        Ok(Action::Await)
    }
}

impl Claims {
    /// The volume first, then the claim: a volume that belongs to a claim is found again, whatever happens between.
    async fn bind(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
        class: Option<&StorageClass>,
    ) -> Result<(), Error> {
        let volume = self.bind_volume(claim, volume).await?;
        let claim = self.bind_claim(claim, &volume).await?;
        let volume = self.expand(&claim, volume, class).await?;
        self.set_status(&claim, status(&claim, "Bound", Some(&volume))).await
    }

    async fn bind_volume(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<PersistentVolume, Error> {
        let known = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let mut bound = volume.clone();
        if known.is_none_or(|known| known.uid != claim.metadata.uid) {
            if known.is_none() {
                bound.annotations_mut().insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
            }
            bound.spec.get_or_insert_default().claim_ref = Some(provision::reference(claim));
            bound = super::replace(&self.actor, &bound).await?;
        }
        Ok(super::set_phase(&self.actor, &bound, "Bound", None).await?)
    }

    async fn bind_claim(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<PersistentVolumeClaim, Error> {
        let mut bound = claim.clone();
        let spec = bound.spec.get_or_insert_default();
        if spec.volume_name.as_deref().is_none_or(str::is_empty) {
            spec.volume_name = volume.metadata.name.clone();
            bound.annotations_mut().insert(BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned());
        }
        bound.annotations_mut().insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
        if bound == *claim { Ok(bound) } else { Ok(self.actor.replace(&bound).await?) }
    }

    /// A directory has no size, so that a volume of ours grows by saying so.
    async fn expand(
        &self,
        claim: &PersistentVolumeClaim,
        volume: PersistentVolume,
        class: Option<&StorageClass>,
    ) -> Result<PersistentVolume, Error> {
        let may = class.is_some_and(|class| class.allow_volume_expansion == Some(true)) && provision::is_ours(&volume);
        let (Some(wanted), true) = (matching::request(claim), may) else { return Ok(volume) };
        if matching::capacity(&volume).map(Amount::from) >= Some(Amount::from(wanted)) {
            return Ok(volume);
        }
        let mut larger = volume;
        larger
            .spec
            .get_or_insert_default()
            .capacity
            .get_or_insert_default()
            .insert("storage".to_owned(), wanted.clone());
        let larger = super::replace(&self.actor, &larger).await?;
        let text = format!("volume {} has {} now", larger.name_any(), wanted.0);
        self.actor.tell(claim, Event::normal("VolumeResizeSuccessful", text));
        Ok(larger)
    }

    async fn provision(
        &self,
        claim: &PersistentVolumeClaim,
        class: &StorageClass,
        node: Option<&Node>,
    ) -> Result<(), Error> {
        self.actor.check_current(claim).await?;
        let volume = provision::volume(claim, class, node, &self.directory);
        match super::volumes(&self.actor).create(&self.actor.post(), &volume).await {
            Ok(volume) => {
                let text = format!("Successfully provisioned volume {}", volume.name_any());
                self.actor.tell(claim, Event::normal("ProvisioningSucceeded", text));
                self.bind(claim, &volume, Some(class)).await
            }
            // Made before, and the cache will say so.
            Err(error) if exists_already(&error) => Ok(()),
            Err(error) => {
                let text = format!("failed to provision volume: {}", crate::actor::message(&error));
                self.actor.tell(claim, Event::warning("ProvisioningFailed", text));
                Err(error.into())
            }
        }
    }

    async fn delegate(&self, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<(), Error> {
        let mut marked = claim.clone();
        for mark in PROVISIONER_MARKS {
            marked.annotations_mut().insert(mark.to_owned(), class.provisioner.clone());
        }
        if marked != *claim {
            marked = self.actor.replace(&marked).await?;
        }
        let text = format!(
            "Waiting for a volume to be created either by the external provisioner {:?} or manually by the system administrator",
            class.provisioner
        );
        self.actor.tell(claim, Event::normal("ExternalProvisioning", text));
        self.set_status(&marked, status(&marked, "Pending", None)).await
    }

    async fn set_status(
        &self,
        claim: &PersistentVolumeClaim,
        status: PersistentVolumeClaimStatus,
    ) -> Result<(), Error> {
        if claim.status.as_ref() != Some(&status) {
            self.actor.replace_status(&PersistentVolumeClaim { status: Some(status), ..claim.clone() }).await?;
        }
        Ok(())
    }
}

/// The status of a claim, with what its volume has.
fn status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) -> PersistentVolumeClaimStatus {
    let spec = volume.and_then(|volume| volume.spec.as_ref());
    PersistentVolumeClaimStatus {
        phase: Some(phase.to_owned()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        capacity: spec.and_then(|spec| spec.capacity.clone()),
        ..claim.status.clone().unwrap_or_default()
    }
}
