//! Jobs run Pods until enough of them have succeeded.

mod decide;
mod failure;
mod indexes;
mod per_index;
mod pod;
mod status;
mod success;
mod tally;

use std::sync::Arc;

use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube::core::Selector;
use windlass_runtime::{
    Action, Attempt, Change as PodChange, Controller, Error, Event, Informer, Manager, ObjectKey, Process,
};

use crate::actor::{Actor, is_gone, message, namespace_leaves};
use crate::claim::{Claim, claim};
use crate::{adoption, owners, recheck};
use decide::{Change, End};
use tally::Tally;

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let jobs = manager.informers().all::<Job>();
    let pods = manager.informers().all::<Pod>();
    let process = Jobs { actor: Actor::new(manager, "job-controller"), jobs: jobs.clone(), pods: pods.clone() };
    let all = jobs.clone();
    let controller = Controller::keyed(manager, "job", process)
        .on(&jobs, |change| [change.key()])
        .on(&pods, job_of)
        .on(&pods, move |change| adoption::wooers(change, &all, selector));
    manager.add(controller);
}

fn selector(job: &Job) -> LabelSelector {
    let none = || LabelSelectorRequirement { key: String::new(), operator: "In".to_owned(), values: None };
    // Without a selector a Job wants no Pods but those that it makes.
    let nothing = || LabelSelector { match_expressions: Some(vec![none()]), ..LabelSelector::default() };
    job.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_else(nothing)
}

fn job_of(change: &PodChange<Pod>) -> Option<ObjectKey> {
    let pod = change.object();
    let owner = owners::controller(&pod.metadata).filter(|owner| owner.kind == "Job")?;
    Some(ObjectKey { namespace: pod.namespace(), name: owner.name.clone() })
}

struct Jobs {
    actor: Actor,
    jobs: Informer<Job>,
    pods: Informer<Pod>,
}

impl Process for Jobs {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let job = self.jobs.get(key);
        self.release_orphans(key, job.as_deref()).await?;
        let Some(job) = job else { return Ok(Action::Await) };
        if !is_ours(&job) {
            return self.expire(&job).await;
        }
        let mut owned = self.claim(&job).await?;
        owned.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
        if status::is_finished(&job) {
            self.untrack(owned.iter()).await?;
            return self.expire(&job).await;
        }
        self.advance(&job, &owned).await
    }
}

impl Jobs {
    /// The Pods of the Job, after those that it should have were adopted and others released.
    async fn claim(&self, job: &Job) -> Result<Vec<Arc<Pod>>, Error> {
        let uid = job.uid().unwrap_or_default();
        let mut nearby = self.pods.claimable(&uid, &job.namespace().unwrap_or_default());
        let Ok(selector) = Selector::try_from(selector(job)) else {
            nearby.retain(|pod| owners::is_controlled_by(&pod.metadata, &uid));
            return Ok(nearby);
        };
        // Nobody would count the end of a Pod that is let go.
        let leaves = |pod: &&Arc<Pod>| claim(&job.metadata, &selector, &pod.metadata) == Claim::Release;
        let (held, rest): (Vec<_>, Vec<_>) = nearby.into_iter().partition(|pod| leaves(&pod) && pod::is_tracked(pod));
        self.untrack(held.iter()).await?;
        adoption::settle(&self.actor, job, &selector, rest).await
    }

    /// One look at a Job that goes on: count, then make or delete Pods.
    async fn advance(&self, job: &Job, owned: &[Arc<Pod>]) -> Result<Action, Error> {
        let now = self.actor.clock.now();
        let pods: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let tally = tally::tally(job, &pods);
        let end = status::decided(job).or_else(|| decide::end(job, &tally, now));
        let status = status::status(job, &pods, &tally, end.as_ref(), now);
        let mut updated = Job { status: Some(status), ..job.clone() };
        if updated.status != job.status {
            updated = self.actor.replace_status(&updated).await?;
            self.tell_end(job, &updated, end.as_ref());
            self.tell_rest(job, &updated);
        }
        let leaves = job.metadata.deletion_timestamp.is_some();
        let is_counted = |pod: &&Arc<Pod>| {
            let is_over = pod::fate(job, pod) != pod::Fate::Active;
            leaves || is_over && (end.is_some() || !per_index::is_bearer(job, pod, &pods))
        };
        self.untrack(owned.iter().filter(is_counted)).await?;
        if leaves {
            return Ok(Action::Await);
        }
        let change = match &end {
            Some(_) => Change::Delete(tally.active.clone()),
            None => decide::change(job, &tally, now),
        };
        if matches!(change, Change::Create(_) | Change::Delete(_)) {
            self.actor.check_current(&updated).await?;
        }
        let wait = self.act(job, change, &tally).await?;
        let again = [wait, decide::deadline(&updated).filter(|_| end.is_none())].into_iter().flatten().min();
        Ok(recheck::at(again, now))
    }

    async fn act(&self, job: &Job, change: Change<'_>, tally: &Tally<'_>) -> Result<Option<Timestamp>, Error> {
        match change {
            Change::None => {}
            Change::Wait(until) => return Ok(Some(until)),
            Change::Delete(surplus) => {
                for pod in surplus {
                    if pod.metadata.deletion_timestamp.is_none() && self.actor.delete(pod).await? {
                        let text = format!("Deleted pod: {}", pod.name_any());
                        self.actor.tell(job, Event::normal("SuccessfulDelete", text));
                    }
                }
            }
            Change::Create(missing) => {
                for index in missing {
                    let failures = index.and_then(|index| tally.failures_by_index.get(&index).copied());
                    self.create(job, pod::make(job, index, failures.unwrap_or_default())).await?;
                }
            }
        }
        Ok(None)
    }

    async fn create(&self, job: &Job, pod: Pod) -> Result<(), Error> {
        match self.actor.create(&pod).await {
            Ok(pod) => {
                self.actor.tell(job, Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())));
                Ok(())
            }
            Err(error) if namespace_leaves(&error) => Ok(()),
            Err(error) => {
                self.actor.tell(job, Event::warning("FailedCreate", format!("Error creating: {}", message(&error))));
                Err(error.into())
            }
        }
    }

    /// Pods that a Job of that name left behind are nobody's: nobody waits for their end.
    async fn release_orphans(&self, key: &ObjectKey, job: Option<&Job>) -> Result<(), Error> {
        let uid = job.and_then(|job| job.metadata.uid.as_deref());
        let is_left = |pod: &Pod| {
            let owner = owners::controller(&pod.metadata).filter(|owner| owner.kind == "Job" && owner.name == key.name);
            let left = owner.is_some_and(|owner| Some(owner.uid.as_str()) != uid);
            left && pod.metadata.namespace == key.namespace && pod::is_tracked(pod)
        };
        let left = self.pods.filter(is_left);
        if left.is_empty() {
            return Ok(());
        }
        // The cache of Jobs may be behind that of Pods.
        let live = self.actor.api::<Job>(key.namespace.as_deref()).get_opt(&key.name).await?;
        let live_uid = live.and_then(|job| job.uid());
        let is_orphan =
            |pod: &&Arc<Pod>| !live_uid.as_ref().is_some_and(|uid| owners::is_controlled_by(&pod.metadata, uid));
        self.untrack(left.iter().filter(is_orphan)).await
    }

    async fn untrack<'a>(&self, pods: impl Iterator<Item = &'a Arc<Pod>>) -> Result<(), Error> {
        let tracked = pods.filter(|pod| pod::is_tracked(pod));
        try_join_all(tracked.map(|pod| self.actor.remove_finalizer(&**pod, pod::TRACKING))).await?;
        Ok(())
    }

    /// Deletes a finished Job whose time is over, with its Pods.
    async fn expire(&self, job: &Job) -> Result<Action, Error> {
        let now = self.actor.clock.now();
        let Some(at) = status::expires_at(job).filter(|_| job.metadata.deletion_timestamp.is_none()) else {
            return Ok(Action::Await);
        };
        if at > now {
            return Ok(recheck::at(Some(at), now));
        }
        match self.actor.delete_with(job, DeleteParams::foreground()).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(Action::Await),
        }
    }

    fn tell_end(&self, before: &Job, after: &Job, end: Option<&End>) {
        if status::is_finished(before) || !status::is_finished(after) {
            return;
        }
        match end {
            Some(end) if end.succeeded => self.actor.tell(before, Event::normal("Completed", "Job completed")),
            Some(end) => self.actor.tell(before, Event::warning(end.reason.clone(), end.message.clone())),
            None => {}
        }
    }

    fn tell_rest(&self, before: &Job, after: &Job) {
        match (status::is_resting(before), status::is_resting(after)) {
            (false, true) => self.actor.tell(before, Event::normal("Suspended", "Job suspended")),
            (true, false) => self.actor.tell(before, Event::normal("Resumed", "Job resumed")),
            _ => {}
        }
    }
}

/// Whether this controller is the one that the Job names; it is the one for all that name none.
fn is_ours(job: &Job) -> bool {
    let manager = job.spec.as_ref().and_then(|spec| spec.managed_by.as_deref());
    manager.is_none_or(|manager| manager == "kubernetes.io/job-controller")
}
