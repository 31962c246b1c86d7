//! CronJobs make Jobs at their times.

mod decide;
mod schedule;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};
use windlass_runtime::{Action, Context, Controller, Error, Event, Informer, Manager, Reconcile};

use crate::actor::{Actor, exists_already, message, namespace_leaves};
use crate::{owners, recheck};
use schedule::Schedule;

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let jobs = manager.informers().all::<Job>();
    let actor = Actor::new(manager, "cronjob-controller");
    let controller = Controller::of(manager, CronJobs { actor, jobs: jobs.clone() }).owns(&jobs);
    manager.add(controller);
}

struct CronJobs {
    actor: Actor,
    jobs: Informer<Job>,
}

impl Reconcile for CronJobs {
    type Resource = CronJob;

    async fn reconcile(&self, cron: Arc<CronJob>, _: &Context<CronJob>) -> Result<Action, Error> {
        let now = self.actor.clock.now();
        let spec = &cron.spec;
        let mut served = None;
        let mut next = None;
        if cron.metadata.deletion_timestamp.is_none() && !spec.suspend.unwrap_or(false) {
            let schedule = Schedule::parse(&spec.schedule, spec.time_zone.as_deref()).map_err(|error| {
                let text = format!("unparseable schedule: {:?} : {error}", spec.schedule);
                self.actor.tell(&*cron, Event::warning("UnparseableSchedule", text));
                Error::Invalid(error.to_string())
            })?;
            let due = decide::due(&cron, &schedule, now);
            next = due.next;
            if due.many_missed {
                let text =
                    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
                self.actor.tell(&*cron, Event::warning("TooManyMissedTimes", text));
            }
            if let Some(moment) = due.now {
                // Seen as it was before, the moment may have been served: its Job can be gone already.
                self.actor.check_current(&*cron).await?;
                served = self.serve(&cron, &schedule, moment).await?;
            }
        }
        self.report(&cron, served).await?;
        // Only now: while it is not written down that a moment was served, its Job is what says so.
        self.forget_history(&cron).await?;
        Ok(recheck::at(next, now))
    }
}

impl CronJobs {
    fn children(&self, cron: &CronJob) -> Vec<Arc<Job>> {
        let uid = cron.uid().unwrap_or_default();
        let mut jobs = self.jobs.owned_by(&uid);
        jobs.retain(|job| owners::is_controlled_by(&job.metadata, &uid));
        jobs
    }

    /// Makes the Job of that moment, as the policy for those at work permits.
    async fn serve(&self, cron: &CronJob, schedule: &Schedule, moment: Timestamp) -> Result<Option<Timestamp>, Error> {
        let active: Vec<Arc<Job>> = self.children(cron).into_iter().filter(|job| is_active(job)).collect();
        let policy = cron.spec.concurrency_policy.as_deref();
        if policy == Some("Forbid") && !active.is_empty() {
            let text = "Not starting job because prior execution is running and concurrency policy is Forbid";
            self.actor.tell(cron, Event::normal("JobAlreadyActive", text));
            return Ok(None);
        }
        for job in active.iter().filter(|_| policy == Some("Replace")) {
            self.actor.delete(&**job).await?;
            self.actor.tell(cron, Event::normal("SuccessfulDelete", format!("Deleted job {}", job.name_any())));
        }
        match self.actor.create(&decide::job(cron, schedule, moment)).await {
            Ok(job) => {
                self.actor.tell(cron, Event::normal("SuccessfulCreate", format!("Created job {}", job.name_any())));
                Ok(Some(moment))
            }
            Err(error) if exists_already(&error) => Ok(Some(moment)),
            Err(error) if namespace_leaves(&error) => Ok(None),
            Err(error) => {
                let text = format!("Error creating job: {}", message(&error));
                self.actor.tell(cron, Event::warning("FailedCreate", text));
                Err(error.into())
            }
        }
    }

    async fn forget_history(&self, cron: &CronJob) -> Result<(), Error> {
        let children = self.children(cron);
        let jobs: Vec<&Job> = children.iter().map(|job| &**job).collect();
        for job in decide::beyond_history(cron, &jobs) {
            if job.metadata.deletion_timestamp.is_none() {
                self.actor.delete(job).await?;
            }
        }
        Ok(())
    }

    async fn report(&self, cron: &CronJob, served: Option<Timestamp>) -> Result<(), Error> {
        let before = cron.status.clone().unwrap_or_default();
        let mut children = self.children(cron);
        children.sort_by_key(|job| job.name_any());
        let active: Vec<ObjectReference> =
            children.iter().filter(|job| is_active(job)).map(|job| job.object_ref(&())).collect();
        let completed = children.iter().filter(|job| decide::ended(job, "Complete"));
        let last_success = completed.filter_map(|job| job.status.as_ref()?.completion_time.clone()).max();
        let status = CronJobStatus {
            active: (!active.is_empty()).then_some(active),
            last_schedule_time: served.map(Time).or(before.last_schedule_time.clone()),
            last_successful_time: last_success.max(before.last_successful_time.clone()),
        };
        if cron.status.as_ref() != Some(&status) && status != before {
            self.actor.replace_status(&CronJob { status: Some(status), ..cron.clone() }).await?;
        }
        Ok(())
    }
}

fn is_active(job: &Job) -> bool {
    !decide::ended(job, "Complete") && !decide::ended(job, "Failed") && job.metadata.deletion_timestamp.is_none()
}
