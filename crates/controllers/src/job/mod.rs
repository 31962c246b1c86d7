//! Jobs run Pods until enough of them have succeeded.

mod decide;
mod indexes;
mod pod;
mod status;

use std::sync::Arc;

use futures::future::try_join_all;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use windlass_runtime::{
    Action, Attempt, Change as PodChange, Controller, Error, Event, Informer, Manager, ObjectKey, Process,
};

use crate::actor::{Actor, is_gone, message, namespace_leaves};
use crate::{owners, recheck};
use decide::{Change, End};

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let jobs = manager.informers().all::<Job>();
    let pods = manager.informers().all::<Pod>();
    let process = Jobs { actor: Actor::new(manager, "job-controller"), jobs: jobs.clone(), pods: pods.clone() };
    let controller = Controller::keyed(manager, "job", process).on(&jobs, |change| [change.key()]).on(&pods, job_of);
    manager.add(controller);
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
        let uid = job.uid().unwrap_or_default();
        let mut owned = self.pods.owned_by(&uid);
        owned.retain(|pod| owners::is_controlled_by(&pod.metadata, &uid));
        owned.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any()));
        if status::is_finished(&job) {
            self.untrack(owned.iter()).await?;
            return self.expire(&job).await;
        }
        self.advance(&job, &owned).await
    }
}

impl Jobs {
    /// One look at a Job that goes on: count, then make or delete Pods.
    async fn advance(&self, job: &Job, owned: &[Arc<Pod>]) -> Result<Action, Error> {
        let now = self.actor.clock.now();
        let pods: Vec<&Pod> = owned.iter().map(|pod| &**pod).collect();
        let tally = decide::tally(job, &pods);
        let end = status::decided(job).or_else(|| decide::end(job, &tally, now));
        let status = status::status(job, &pods, &tally, end.as_ref(), now);
        let updated = Job { status: Some(status), ..job.clone() };
        if updated.status != job.status {
            self.actor.replace_status(&updated).await?;
            self.tell_end(job, &updated, end.as_ref());
        }
        let leaves = job.metadata.deletion_timestamp.is_some();
        self.untrack(owned.iter().filter(|pod| leaves || pod::fate(job, pod) != pod::Fate::Active)).await?;
        if leaves {
            return Ok(Action::Await);
        }
        let change = match &end {
            Some(_) => Change::Delete(tally.active.clone()),
            None => decide::change(job, &tally, now),
        };
        let wait = self.act(job, change).await?;
        let again = [wait, decide::deadline(&updated).filter(|_| end.is_none())].into_iter().flatten().min();
        Ok(recheck::at(again, now))
    }

    async fn act(&self, job: &Job, change: Change<'_>) -> Result<Option<Timestamp>, Error> {
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
                    self.create(job, index).await?;
                }
            }
        }
        Ok(None)
    }

    async fn create(&self, job: &Job, index: Option<i32>) -> Result<(), Error> {
        match self.actor.create(&pod::make(job, index)).await {
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
            Some(End::Complete) => self.actor.tell(before, Event::normal("Completed", "Job completed")),
            Some(End::Failed { reason, message }) => {
                self.actor.tell(before, Event::warning(*reason, message.clone()));
            }
            None => {}
        }
    }
}
