//! Serves the kind `BackupSchedule`: looks, lets `decide` decide, and acts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use sha2::{Digest, Sha256};
use windlass_core::schedule::{Schedule, ScheduleError};
use windlass_core::{CustomResource, Event, Statement, condition, names};
use windlass_runtime::{Action, BackupSubject, Context, Error, Reconcile};

use super::decide::{Made, Mode, Seen, Step, decide};
use super::kind::BackupSchedule;
use crate::backup::capability::Backups;
use crate::backup::kind::{Backup, BackupSpec, Phase};
use crate::capability::Ability;
use crate::reconciler::{ReconcileApp, reconcile};

/// The label of backups that names their schedule, by a hash: names may be longer than labels.
const SCHEDULE: &str = "windlass.dev/backup-schedule";
/// What became of backups is seen at the latest after this.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// Names of backups have the moment behind the name of their schedule.
const NAME_CHARS_MAX: usize = 240;

/// Serves the `BackupSchedule`s of one kind: an operator to be [in one program](crate::program) with [`backups`](super::super::backups).
pub fn schedules<B: Backups>() -> ReconcileApp<ScheduleControl<B>> {
    let backup = Backup::facts();
    reconcile(ScheduleControl::<B> { kind: std::marker::PhantomData }).able::<B::Target>(Ability::Schedule).allow(
        backup.group,
        backup.plural,
        &["get", "list", "create", "delete"],
    )
}

/// Serves the kind `BackupSchedule` for the targets of one kind.
pub struct ScheduleControl<B> {
    kind: std::marker::PhantomData<fn() -> B>,
}

impl<B: Backups> Reconcile for ScheduleControl<B> {
    type Resource = BackupSchedule;

    async fn reconcile(&self, object: Arc<BackupSchedule>, cx: &Context<BackupSchedule>) -> Result<Action, Error> {
        let (target, own) = (&object.spec.target, B::Target::facts());
        let is_mine = target.group == own.group && target.kind == own.kind;
        if !is_mine || object.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Await);
        }
        let schedule = match Schedule::parse(&object.spec.schedule, object.spec.time_zone.as_deref()) {
            Ok(schedule) => schedule,
            Err(error) => {
                report(&object, &Step::default(), Some(error), cx).await?;
                return Ok(Action::Await);
            }
        };
        let now = cx.clock().now();
        let seen = look(&object, &schedule, now, cx).await?;
        let step = decide(&seen);
        let subject = BackupSubject {
            kind: &target.kind,
            namespace: object.metadata.namespace.as_deref().unwrap_or_default(),
            name: &target.name,
        };
        // From the schedule on there is something to be backed up: that it never was is told, too.
        cx.metrics().backups().last_success(&subject, step.succeeded.map(Timestamp::as_second));
        act(&object, &step, cx).await?;
        report(&object, &step, None, cx).await?;
        Ok(Action::Recheck(pause(step.next, now)))
    }
}

/// Until the next moment; what backups come to is looked at in between.
fn pause(next: Option<Timestamp>, now: Timestamp) -> Duration {
    let until = next.map(|next| next.duration_since(now)).and_then(|it| Duration::try_from(it).ok());
    until.unwrap_or(LOOK_MAX).clamp(Duration::from_millis(100), LOOK_MAX)
}

async fn look<'a>(
    object: &BackupSchedule,
    schedule: &'a Schedule,
    now: Timestamp,
    cx: &Context<BackupSchedule>,
) -> Result<Seen<'a>, Error> {
    let backups: Api<Backup> = Api::namespaced(cx.client(), &object.namespace().unwrap_or_default());
    let listed = backups.list(&ListParams::default().labels(&format!("{SCHEDULE}={}", key(object)))).await?;
    let status = object.status.as_ref().map(|status| &status.own);
    let mode = match (object.spec.suspend, object.spec.immediate) {
        (true, _) => Mode::Suspended,
        (false, true) => Mode::Immediate,
        (false, false) => Mode::Scheduled,
    };
    Ok(Seen {
        schedule,
        created: object.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0),
        served: status.and_then(|status| status.last_time.as_ref()?.parse().ok()),
        now,
        late_max: object.spec.starting_deadline_seconds.map(|seconds| SignedDuration::from_secs(seconds.into())),
        mode,
        keep: object.spec.retention.as_ref().map(|retention| retention.keep),
        made: listed.items.iter().map(made).collect(),
    })
}

fn made(backup: &Backup) -> Made {
    let status = backup.status.as_ref().map(|status| &status.own);
    Made {
        name: backup.name_any(),
        phase: status.map_or(Phase::Pending, |status| status.phase),
        completed: status.and_then(|status| status.completed_at.as_ref()?.parse().ok()),
        asked: backup.metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default(),
    }
}

async fn act(object: &BackupSchedule, step: &Step, cx: &Context<BackupSchedule>) -> Result<(), Error> {
    let backups: Api<Backup> = Api::namespaced(cx.client(), &object.namespace().unwrap_or_default());
    if let Some(moment) = step.serve {
        let params = PostParams { field_manager: Some(cx.name().to_owned()), ..PostParams::default() };
        match backups.create(&params, &backup(object, moment)).await {
            Ok(made) => {
                let text = format!("made the Backup {}", made.name_any());
                cx.events().record(object, &(), Event::normal("BackupMade", text));
            }
            // Its name has the moment in it: it was made before a crash.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error.into()),
        }
    }
    for name in &step.forget {
        forget(&backups, name, object).await?;
    }
    Ok(())
}

/// Deletes a `Backup`, if it is one of this schedule still. Its files go when the next one succeeds.
async fn forget(backups: &Api<Backup>, name: &str, object: &BackupSchedule) -> Result<(), Error> {
    let Some(found) = backups.get_opt(name).await? else { return Ok(()) };
    if found.spec.schedule != Some(object.name_any()) {
        return Ok(());
    }
    let preconditions = Preconditions { uid: found.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match backups.delete(name, &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The backup of a moment. It belongs to nobody: backups stay when their schedule is deleted.
fn backup(object: &BackupSchedule, moment: Timestamp) -> Backup {
    let spec = &object.spec;
    let mut backup = Backup::new(
        backup_name(object, moment),
        BackupSpec {
            target: spec.target.clone(),
            method: spec.method.clone(),
            deadline_seconds: spec.deadline_seconds,
            schedule: Some(object.name_any()),
            verify: spec.verify,
            keep: spec.retention.as_ref().map(|retention| retention.keep),
        },
    );
    backup.metadata = ObjectMeta {
        namespace: object.namespace(),
        labels: Some(BTreeMap::from([(SCHEDULE.to_owned(), key(object))])),
        ..backup.metadata
    };
    backup
}

fn backup_name(object: &BackupSchedule, moment: Timestamp) -> String {
    let short: String = object.name_any().chars().take(NAME_CHARS_MAX).collect();
    format!("{short}-{}", moment.as_second())
}

fn key(object: &BackupSchedule) -> String {
    let digest = Sha256::digest(object.name_any());
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

async fn report(
    object: &BackupSchedule,
    step: &Step,
    error: Option<ScheduleError>,
    cx: &Context<BackupSchedule>,
) -> Result<(), Error> {
    let mut status = object.status.clone().unwrap_or_default();
    if let Some(moment) = step.serve {
        status.own.last_time = Some(moment.to_string());
        status.own.last_backup = Some(backup_name(object, moment));
    }
    let succeeded = step.succeeded.map(|at| at.to_string());
    status.own.last_successful_time = succeeded.or(status.own.last_successful_time);
    let next = step.next.map(|at| at.to_string());
    let (is_ready, reason, message) = match (&error, object.spec.suspend) {
        (Some(error), _) => (false, "Invalid", format!("spec.schedule: {error}")),
        (None, true) => (true, "Suspended", "no backups are taken for now".to_owned()),
        (None, false) => (true, "Scheduled", String::new()),
    };
    let statements = [
        Statement::new(names::condition::READY, is_ready, reason, message.clone()),
        Statement::new(names::condition::STALLED, !is_ready, reason, if is_ready { String::new() } else { message }),
    ];
    for statement in statements {
        condition::set(&mut status.conditions, statement, object.metadata.generation, cx.clock().now());
    }
    status.observed_generation = object.metadata.generation;
    status.own.next_time.clone_from(&next);
    if object.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let mut patch = json!({"status": status});
    if next.is_none() {
        patch["status"]["nextTime"] = serde_json::Value::Null;
    }
    let api: Api<BackupSchedule> = Api::namespaced(cx.client(), &object.namespace().unwrap_or_default());
    let params = PatchParams { field_manager: Some(cx.name().to_owned()), ..PatchParams::default() };
    api.patch_status(&object.name_any(), &params, &Patch::Merge(patch)).await?;
    Ok(())
}
