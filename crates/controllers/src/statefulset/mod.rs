//! StatefulSets keep Pods with names, order and data of their own.

mod decide;
mod identity;
mod retention;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use kube::core::Selector;
use windlass_runtime::{Action, Context, Controller, Error, Event, Informer, Manager, ObjectKey, Reconcile};

use crate::actor::{Actor, exists_already, message, namespace_leaves};
use crate::{adoption, history, recheck};
use decide::{Observed, Step};

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let pods = manager.informers().all::<Pod>();
    let revisions = manager.informers().all::<ControllerRevision>();
    let process = StatefulSets {
        actor: Actor::new(manager, "statefulset-controller"),
        pods: pods.clone(),
        claims: manager.informers().all(),
        revisions: revisions.clone(),
    };
    let controller = Controller::of(manager, process);
    let sets = controller.informer();
    let controller =
        controller.owns(&pods).owns(&revisions).on(&pods, move |change| adoption::wooers(change, &sets, selector));
    manager.add(controller);
}

struct StatefulSets {
    actor: Actor,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    revisions: Informer<ControllerRevision>,
}

fn selector(set: &StatefulSet) -> LabelSelector {
    set.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default()
}

impl Reconcile for StatefulSets {
    type Resource = StatefulSet;

    async fn reconcile(&self, set: Arc<StatefulSet>, _: &Context<StatefulSet>) -> Result<Action, Error> {
        let selector = Selector::try_from(selector(&set)).map_err(|error| Error::Invalid(error.to_string()))?;
        self.claims.synced().await;
        let namespace = set.namespace().unwrap_or_default();
        // Only names that the set would give are its own.
        let mut nearby = self.pods.claimable(&set.uid().unwrap_or_default(), &namespace);
        nearby.retain(|pod| identity::ordinal(&set, pod).is_some());
        let pods = adoption::settle(&self.actor, &*set, &selector, nearby).await?;
        let known = self.revisions.owned_by(&set.uid().unwrap_or_default());
        let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
        let update = history::ensure(&self.actor, &*set, &template, &known, collisions(&set)).await?;
        let named = set.status.as_ref().and_then(|status| status.current_revision.clone());
        let current = known.iter().find(|revision| Some(revision.name_any()) == named).cloned();
        let current = current.unwrap_or_else(|| update.clone());

        let pods: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let (current_name, update_name) = (current.name_any(), update.name_any());
        let now = self.actor.clock.now();
        let observed = Observed { set: &set, pods: &pods, current: &current_name, update: &update_name, now };
        self.keep_claims(observed).await?;
        let result = self.act(observed, &current, &update).await;
        let (status, again) = decide::status(observed);
        if set.status.as_ref() != Some(&status) {
            self.actor.replace_status(&StatefulSet { status: Some(status), ..StatefulSet::clone(&set) }).await?;
        }
        result?;
        let in_use = pods.iter().filter_map(|pod| decide::revision(pod).map(str::to_owned));
        let in_use: Vec<String> = in_use.chain([current_name, update_name]).collect();
        let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        history::trim(&self.actor, &known, &in_use, limit).await?;
        Ok(recheck::at(again, now))
    }
}

fn collisions(set: &StatefulSet) -> i32 {
    set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0)
}

impl StatefulSets {
    async fn act(
        &self,
        observed: Observed<'_>,
        current: &ControllerRevision,
        update: &ControllerRevision,
    ) -> Result<(), Error> {
        let steps = decide::steps(observed);
        if !steps.is_empty() {
            self.actor.check_current(observed.set).await?;
        }
        for step in steps {
            match step {
                Step::Create { ordinal, updated } => {
                    let revision = if updated { update } else { current };
                    self.create(observed.set, revision, ordinal).await?;
                }
                Step::Delete { ordinal } => {
                    let is_it = |pod: &&&Pod| identity::ordinal(observed.set, pod) == Some(ordinal);
                    let Some(pod) = observed.pods.iter().find(is_it) else { continue };
                    if self.actor.delete(*pod).await? {
                        self.tell(observed.set, "Delete", "delete", &pod.name_any());
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the claims of all Pods the owners that the policy wants; before a Pod goes, so that they can go with it.
    async fn keep_claims(&self, observed: Observed<'_>) -> Result<(), Error> {
        let set = observed.set;
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        for pod in observed.pods {
            let Some(ordinal) = identity::ordinal(set, pod) else { continue };
            for claim in identity::claims(set, ordinal) {
                let Some(claim) = self.claims.get(&ObjectKey::of(&claim.object)) else { continue };
                if let Some(owners) = retention::owners(set, &claim, Some(pod), !observed.is_wanted(ordinal)) {
                    self.actor.set_owners(&*claim, &owners).await?;
                }
            }
        }
        Ok(())
    }

    /// Claims first: a Pod whose data is not asked for would wait in vain.
    async fn create(&self, set: &StatefulSet, revision: &ControllerRevision, ordinal: i32) -> Result<(), Error> {
        for mut claim in identity::claims(set, ordinal) {
            if self.claims.get(&ObjectKey::of(&claim.object)).is_none() {
                claim.object.metadata.owner_references = retention::owners(set, &claim.object, None, false);
                self.made(set, "Claim", self.actor.create(&claim.object).await)?;
            }
        }
        self.made(set, "Pod", self.actor.create(&identity::pod(set, revision, ordinal)).await)
    }

    fn made<K: kube::Resource>(
        &self,
        set: &StatefulSet,
        kind: &str,
        made: Result<K, kube::Error>,
    ) -> Result<(), Error> {
        let name = set.name_any();
        match made {
            Ok(object) => {
                let text = format!("create {kind} {} in StatefulSet {name} successful", object.name_any());
                self.actor.tell(set, Event::normal("SuccessfulCreate", text));
                Ok(())
            }
            Err(error) if namespace_leaves(&error) => Ok(()),
            // Its arrival in the cache is what the next look waits for; a stranger's Pod of that name blocks the set.
            Err(error) if exists_already(&error) && kind == "Claim" => Ok(()),
            Err(error) => {
                let text = format!("create {kind} in StatefulSet {name} failed error: {}", message(&error));
                self.actor.tell(set, Event::warning("FailedCreate", text));
                Err(error.into())
            }
        }
    }

    fn tell(&self, set: &StatefulSet, reason: &str, verb: &str, pod: &str) {
        let text = format!("{verb} Pod {pod} in StatefulSet {} successful", set.name_any());
        self.actor.tell(set, Event::normal(format!("Successful{reason}"), text));
    }
}
