//! Claims that Pods bring along: made for the Pod, and gone with it.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use windlass_runtime::{Action, Attempt, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use crate::actor::{Actor, exists_already, message, namespace_leaves};
use crate::{owners, pods};

/// Adds the controller to the manager.
pub(super) fn add(manager: &mut Manager) {
    let pods = manager.informers().all::<Pod>();
    let claims = manager.informers().all::<PersistentVolumeClaim>();
    let process = Ephemeral {
        actor: Actor::new(manager, "ephemeral-volume-controller"),
        pods: pods.clone(),
        claims: claims.clone(),
    };
    let controller = Controller::keyed(manager, "ephemeral-volume", process)
        .on(&pods, |change| {
            Some(change.key()).filter(|_| change.new.as_deref().is_some_and(|pod| !wanted(pod).is_empty()))
        })
        // A claim that was deleted too early is made again.
        .on(&claims, |change| {
            let claim = change.object();
            let pod =
                owners::controller(&claim.metadata).filter(|owner| owner.kind == "Pod" && change.new.is_none())?;
            Some(ObjectKey { namespace: claim.namespace(), name: pod.name.clone() })
        });
    manager.add(controller);
}

/// The claims that a Pod brings along.
fn wanted(pod: &Pod) -> Vec<PersistentVolumeClaim> {
    if !pods::is_active(pod) {
        return vec![];
    }
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let templates = volumes.filter_map(|volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
        Some(claim(pod, &volume.name, template))
    });
    templates.collect()
}

fn claim(pod: &Pod, volume: &str, template: &PersistentVolumeClaimTemplate) -> PersistentVolumeClaim {
    let meta = template.metadata.clone().unwrap_or_default();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(format!("{}-{volume}", pod.name_any())),
            namespace: pod.namespace(),
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: Some(vec![owners::controller_reference(pod)]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone()),
        status: None,
    }
}

struct Ephemeral {
    actor: Actor,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
}

impl Process for Ephemeral {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Await) };
        for claim in wanted(&pod) {
            let known = self.claims.get(&ObjectKey::of(&claim));
            let is_own = |known: &PersistentVolumeClaim| {
                owners::is_controlled_by(&known.metadata, &pod.uid().unwrap_or_default())
            };
            match known {
                Some(known) if is_own(&known) => {}
                Some(known) => {
                    let text = format!("claim {:?} is there already and was not made for this Pod", known.name_any());
                    self.actor.tell(&*pod, Event::warning("FailedBinding", text));
                }
                None => self.create(&pod, &claim).await?,
            }
        }
        Ok(Action::Await)
    }
}

impl Ephemeral {
    async fn create(&self, pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), Error> {
        match self.actor.create(claim).await {
            Ok(_) => Ok(()),
            // The cache is behind, and will bring the Pod here again if it is somebody else's.
            Err(error) if exists_already(&error) || namespace_leaves(&error) => Ok(()),
            Err(error) => {
                let text = format!("ephemeral volume: {}", message(&error));
                self.actor.tell(pod, Event::warning("FailedCreate", text));
                Err(error.into())
            }
        }
    }
}
