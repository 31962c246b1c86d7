//! Serves the kind `Backup`: looks, lets `decide` decide, and acts.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::Value;
use windlass_core::{CustomResource, Event, Status};
use windlass_runtime::{Action, BackupSubject, Context, Error, Reconcile};

use super::capability::Backups;
use super::decide::{JobSeen, Rival, Seen, Step, ahead, decide};
use super::job::{self, JOB_NAME, TARGET};
use super::kind::{Backup, BackupStatus, BackupTarget, Phase};
use super::record::{BackupOrder, BackupRecord};
use super::report::{News, report};
use super::verification;
use crate::capability::Ability;
use crate::reconciler::{ReconcileApp, reconcile};

/// When a backup that waits for something is looked at again.
const WAIT: Duration = Duration::from_secs(2);
/// When one that is taken is looked at again, if nothing is heard of it.
pub(super) const WATCH: Duration = Duration::from_secs(30);

/// Serves the `Backup`s of one kind: an operator to be [in one program](crate::program) with the one that keeps the kind.
///
/// `Backup`s of other kinds are somebody else's, and left alone.
pub fn backups<B: Backups>(knowledge: B) -> ReconcileApp<BackupControl<B>> {
    let target = B::Target::facts();
    reconcile(BackupControl { knowledge })
        .able::<B::Target>(Ability::Backup)
        .owns::<Job>()
        // One after the other: that is how two cannot begin at once.
        .workers(1)
        .allow(target.group, target.plural, &["get"])
        .allow("", "pods", &["get", "list"])
}

/// Serves the kind `Backup` with what its author knows.
pub struct BackupControl<B> {
    knowledge: B,
}

impl<B: Backups> Reconcile for BackupControl<B> {
    type Resource = Backup;

    async fn reconcile(&self, backup: Arc<Backup>, cx: &Context<Backup>) -> Result<Action, Error> {
        let target = &backup.spec.target;
        let own = B::Target::facts();
        if target.group != own.group || target.kind != own.kind || backup.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Await);
        }
        tell_last_success(&backup, cx);
        match phase(&backup) {
            Phase::Failed => return Ok(Action::Await),
            Phase::Succeeded => return verification::verify(&self.knowledge, &backup, cx).await,
            Phase::Pending | Phase::Running => {}
        }
        let look = self.look(&backup, cx).await?;
        let step = decide(&look.seen);
        self.act(step, &look, cx).await
    }
}

/// What was seen of a backup, and what it would be begun with.
struct Look<'a> {
    backup: &'a Backup,
    seen: Seen,
    order: BackupOrder,
    pod: Option<PodSpec>,
}

impl<B: Backups> BackupControl<B> {
    async fn look<'a>(&self, backup: &'a Backup, cx: &Context<Backup>) -> Result<Look<'a>, Error> {
        let namespace = backup.namespace().unwrap_or_default();
        let (jobs, rivals): (Api<Job>, Api<Backup>) =
            (Api::namespaced(cx.client(), &namespace), Api::namespaced(cx.client(), &namespace));
        let id = job::id(backup);
        let key = job::target_key(&backup.spec.target);
        // What the API has, not what a cache has: this is what keeps two from being taken at once.
        let all = jobs.list(&ListParams::default().labels(&format!("{TARGET}={key}"))).await?.items;
        let busy = all.iter().find(|it| it.name_any() != id && !job::is_over(it)).map(ResourceExt::name_any);
        let job = match all.iter().find(|it| it.name_any() == id) {
            Some(job) => {
                let pods = pods_of(&id, backup, cx).await?;
                job::seen(job, &pods, |words| BackupRecord::of_pod(words, &id).map(Box::new))
            }
            None => JobSeen::None,
        };
        let listed = rivals.list(&ListParams::default()).await?.items;
        let (mine, now) = (asked(backup), cx.clock().now());
        let rivals: Vec<Rival> = listed.iter().filter(|it| it.spec.target == backup.spec.target).map(rival).collect();
        let targets: Api<B::Target> = Api::namespaced(cx.client(), &namespace);
        let target = targets.get_opt(&backup.spec.target.name).await?;
        let target = target.map(|target| self.knowledge.carried_out(&target));
        let (method, flaw) = method::<B>(backup);
        let configuration = target.as_ref().map(spec_of).unwrap_or_default();
        let order = order(backup, id, method, configuration);
        let (pod, obstacle) = match target.as_ref().map(|target| self.knowledge.take(&order, target)) {
            Some(Ok(pod)) => (Some(pod), None),
            Some(Err(obstacle)) => (None, Some((obstacle.reason, obstacle.message))),
            None => (None, Some(("NoTarget".to_owned(), missing(&backup.spec.target)))),
        };
        let status = backup.status.as_ref().map(|status| &status.own);
        let seen = Seen {
            phase: phase(backup),
            asked: mine,
            started: status.and_then(|status| status.started_at.as_ref()?.parse().ok()),
            now,
            deadline: SignedDuration::from_secs(backup.spec.deadline_seconds.into()),
            flaw,
            job,
            busy,
            ahead: ahead(&rivals, (&backup.name_any(), mine)).map(str::to_owned),
            obstacle,
        };
        Ok(Look { backup, seen, order, pod })
    }

    async fn act(&self, step: Step, look: &Look<'_>, cx: &Context<Backup>) -> Result<Action, Error> {
        let backup = look.backup;
        let mut status = backup.status.clone().unwrap_or_default();
        status.own.method = Some(look.order.method.clone());
        match step {
            Step::Rest => return Ok(Action::Await),
            Step::Wait { reason, message } => {
                report(backup, status, news(Phase::Pending, &reason, message), cx).await?;
                return Ok(Action::Recheck(WAIT));
            }
            Step::Begin => {
                self.begin(look, cx).await?;
                status.own.configuration = Some(look.order.configuration.clone());
                watch(&mut status.own, look.seen.now);
                report(backup, status, news(Phase::Running, "Running", format!("Job {} takes it", look.order.id)), cx)
                    .await?;
                tell(backup, Event::normal("BackupStarted", format!("Job {} takes it", look.order.id)), cx);
                return Ok(Action::Recheck(WATCH));
            }
            Step::Watch => {
                watch(&mut status.own, look.seen.now);
                report(backup, status, news(Phase::Running, "Running", format!("Job {} takes it", look.order.id)), cx)
                    .await?;
                return Ok(Action::Recheck(WATCH));
            }
            Step::Finish(record) => {
                finish(backup, status, &record, cx).await?;
                return Ok(Action::Recheck(WAIT)); // It may have to be verified.
            }
            Step::Fail { reason, message } => {
                if look.seen.job == JobSeen::Active {
                    end_job(look, cx).await?;
                }
                status.own.phase = Phase::Failed;
                status.own.completed_at = Some(whole_seconds(look.seen.now).to_string());
                status.own.error = Some(message.clone());
                report(backup, status, news(Phase::Failed, &reason, message.clone()), cx).await?;
                cx.metrics().backups().failed(&look.order.method);
                tell(backup, Event::warning("BackupFailed", format!("{reason}: {message}")), cx);
            }
        }
        Ok(Action::Await)
    }

    async fn begin(&self, look: &Look<'_>, cx: &Context<Backup>) -> Result<(), Error> {
        let Some(pod) = look.pod.clone() else { return Err(Error::failed("there is no Pod to take it")) };
        make(&job::job(look.backup, &look.order, pod), cx).await
    }
}

/// The Pods of a Job.
pub(super) async fn pods_of(job: &str, backup: &Backup, cx: &Context<Backup>) -> Result<Vec<Pod>, Error> {
    let pods: Api<Pod> = Api::namespaced(cx.client(), &backup.namespace().unwrap_or_default());
    Ok(pods.list(&ListParams::default().labels(&format!("{JOB_NAME}={job}"))).await?.items)
}

/// Makes a Job, unless it is there.
pub(super) async fn make(job: &Job, cx: &Context<Backup>) -> Result<(), Error> {
    let jobs: Api<Job> = Api::namespaced(cx.client(), &job.namespace().unwrap_or_default());
    let params = PostParams { field_manager: Some(cx.name().to_owned()), ..PostParams::default() };
    match jobs.create(&params, job).await {
        Ok(_) => Ok(()),
        // Its name has the uid of the backup in it: it is this one's, from before a crash.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn finish(
    backup: &Backup,
    mut status: Status<BackupStatus>,
    record: &BackupRecord,
    cx: &Context<Backup>,
) -> Result<(), Error> {
    record.enter(&mut status.own);
    status.own.phase = Phase::Succeeded;
    let message = format!("{} bytes in {}", record.size_bytes, record.location);
    let took = status.own.duration_seconds.unwrap_or_default();
    report(backup, status, news(Phase::Succeeded, "Succeeded", message.clone()), cx).await?;
    cx.metrics().backups().succeeded(&record.method, Duration::from_secs_f64(took.max(0.0)));
    cx.metrics().backups().last_success(&subject(backup), Some(record.completed_at.as_second()));
    tell(backup, Event::normal("BackupSucceeded", message), cx);
    Ok(())
}

async fn end_job(look: &Look<'_>, cx: &Context<Backup>) -> Result<(), Error> {
    let jobs: Api<Job> = Api::namespaced(cx.client(), &look.backup.namespace().unwrap_or_default());
    match jobs.delete(&look.order.id, &DeleteParams::background()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn news(phase: Phase, reason: &str, message: String) -> News<'_> {
    News { phase, reason, message }
}

/// From when on it is taken.
fn watch(status: &mut BackupStatus, now: Timestamp) {
    status.phase = Phase::Running;
    status.started_at.get_or_insert_with(|| whole_seconds(now).to_string());
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn order(backup: &Backup, id: String, method: String, configuration: Value) -> BackupOrder {
    BackupOrder {
        id,
        backup: format!("{}/{}", backup.namespace().unwrap_or_default(), backup.name_any()),
        method,
        schedule: backup.spec.schedule.clone(),
        keep: backup.spec.keep,
        configuration,
    }
}

fn method<B: Backups>(backup: &Backup) -> (String, Option<String>) {
    let preferred = B::METHODS.first().copied().unwrap_or_default();
    match &backup.spec.method {
        None => (preferred.to_owned(), None),
        Some(method) if B::METHODS.contains(&method.as_str()) => (method.clone(), None),
        Some(method) => {
            (method.clone(), Some(format!("there is no method {method:?}: say one of {}", B::METHODS.join(", "))))
        }
    }
}

fn rival(backup: &Backup) -> Rival {
    Rival { name: backup.name_any(), asked: asked(backup), phase: phase(backup) }
}

fn asked(backup: &Backup) -> Timestamp {
    backup.metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default()
}

fn phase(backup: &Backup) -> Phase {
    backup.status.as_ref().map(|status| status.own.phase).unwrap_or_default()
}

fn spec_of<K: serde::Serialize>(target: &K) -> Value {
    serde_json::to_value(target).map(|mut object| object["spec"].take()).unwrap_or_default()
}

fn missing(target: &BackupTarget) -> String {
    format!("there is no {} {}", target.kind, target.name)
}

pub(super) fn subject(backup: &Backup) -> BackupSubject<'_> {
    let namespace = backup.metadata.namespace.as_deref().unwrap_or_default();
    BackupSubject { kind: &backup.spec.target.kind, namespace, name: &backup.spec.target.name }
}

/// After a restart, too, the metric says what the status says.
fn tell_last_success(backup: &Backup, cx: &Context<Backup>) {
    let status = backup.status.as_ref().map(|status| &status.own);
    let succeeded = status.filter(|status| status.phase == Phase::Succeeded);
    let at = succeeded.and_then(|status| status.completed_at.as_ref()?.parse::<Timestamp>().ok());
    cx.metrics().backups().last_success(&subject(backup), at.map(Timestamp::as_second));
    if backup.spec.verify {
        let at = succeeded.and_then(|status| status.verified_at.as_ref()?.parse::<Timestamp>().ok());
        cx.metrics().backups().verified(&subject(backup), at.map(Timestamp::as_second));
    }
}

pub(super) fn tell(backup: &Backup, event: Event, cx: &Context<Backup>) {
    cx.events().record(backup, &(), event);
}
