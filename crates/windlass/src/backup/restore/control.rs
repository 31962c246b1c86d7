//! Serves the kind `Restore`: looks, lets `decide` decide, and acts.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt};
use windlass_core::{CustomResource, Event, Status};
use windlass_runtime::{Action, Context, Error, Reconcile};

use super::decide::{Seen, Source, Step, Target, decide};
use super::kind::{Restore, RestoreStatus};
use crate::backup::capability::Backups;
use crate::backup::kind::{Backup, Phase};
use crate::backup::record::RestoreOrder;
use crate::backup::report::{News, report};
use crate::capability::Ability;
use crate::reconciler::{ReconcileApp, reconcile};

/// When a restore is looked at again.
const LOOK: Duration = Duration::from_secs(2);
/// The annotation of a restored resource with the uid of the `Restore` that made it.
const MADE_BY: &str = "windlass.dev/restored-by";

/// Serves the `Restore`s into one kind: an operator to be [in one program](crate::program) with the one that keeps the kind.
pub fn restores<B: Backups>(knowledge: B) -> ReconcileApp<RestoreControl<B>> {
    let (target, backup) = (B::Target::facts(), Backup::facts());
    reconcile(RestoreControl { knowledge })
        .able::<B::Target>(Ability::Restore)
        .allow(target.group, target.plural, &["get", "create"])
        .allow(backup.group, backup.plural, &["get"])
}

/// Serves the kind `Restore` with what its author knows.
pub struct RestoreControl<B> {
    knowledge: B,
}

impl<B: Backups> Reconcile for RestoreControl<B> {
    type Resource = Restore;

    async fn reconcile(&self, restore: Arc<Restore>, cx: &Context<Restore>) -> Result<Action, Error> {
        let (into, own) = (&restore.spec.into, B::Target::facts());
        let is_mine = into.group == own.group && into.kind == own.kind;
        if !is_mine || restore.metadata.deletion_timestamp.is_some() || phase(&restore).is_over() {
            return Ok(Action::Await);
        }
        let (source, order) = self.source(&restore, cx).await?;
        let seen = Seen {
            phase: phase(&restore),
            source,
            target: self.target(&restore, cx).await?,
            is_late: is_late(&restore, cx.clock().now()),
        };
        let step = decide(&seen);
        self.act(&restore, step, order, cx).await
    }
}

impl<B: Backups> RestoreControl<B> {
    async fn target(&self, restore: &Restore, cx: &Context<Restore>) -> Result<Target, Error> {
        let targets: Api<B::Target> = Api::namespaced(cx.client(), &restore.namespace().unwrap_or_default());
        Ok(match targets.get_opt(&restore.spec.into.name).await? {
            None => Target::Absent,
            Some(target) if target.annotations().get(MADE_BY) == restore.uid().as_ref() => {
                Target::Own(self.knowledge.progress(&target))
            }
            Some(_) => Target::Foreign,
        })
    }

    async fn source(&self, restore: &Restore, cx: &Context<Restore>) -> Result<(Source, RestoreOrder), Error> {
        let namespace = restore.namespace().unwrap_or_default();
        let name = restore.spec.into.name.clone();
        let mut order = RestoreOrder { namespace: namespace.clone(), name, ..RestoreOrder::default() };
        if let Some(text) = &restore.spec.time {
            match text.parse() {
                Ok(time) => order.time = Some(time),
                Err(error) => return Ok((Source::Unusable(format!("spec.time: {error}")), order)),
            }
        }
        if let Some(storage) = &restore.spec.source.storage {
            order.path = storage.path.trim_matches('/').to_owned();
            order.location = Some(storage.location.clone());
            return Ok((Source::Usable, order));
        }
        let backups: Api<Backup> = Api::namespaced(cx.client(), &namespace);
        let backup = restore.spec.source.backup.clone().unwrap_or_default();
        let Some(found) = backups.get_opt(&backup).await? else {
            return Ok((Source::Awaited(format!("there is no Backup {backup}")), order));
        };
        let status = found.status.map(|status| status.own).unwrap_or_default();
        let source = match status.phase {
            Phase::Failed => Source::Unusable(format!("the Backup {backup} failed")),
            Phase::Pending | Phase::Running => Source::Awaited(format!("the Backup {backup} is not there yet")),
            Phase::Succeeded if (&found.spec.target.group, &found.spec.target.kind) != kind_of(restore) => {
                Source::Unusable(format!("the Backup {backup} is one of a {}", found.spec.target.kind))
            }
            Phase::Succeeded => Source::Usable,
        };
        order.path = status.location.unwrap_or_default();
        order.configuration = status.configuration;
        Ok((source, order))
    }

    async fn act(
        &self,
        restore: &Restore,
        step: Step,
        order: RestoreOrder,
        cx: &Context<Restore>,
    ) -> Result<Action, Error> {
        let mut status = restore.status.clone().unwrap_or_default();
        match step {
            Step::Rest => return Ok(Action::Await),
            Step::Wait { reason, message } => {
                report(restore, status, News { phase: Phase::Pending, reason, message }, cx).await?;
            }
            Step::Make => match self.knowledge.restored(&order) {
                Ok(target) => {
                    self.make(restore, target, cx).await?;
                    begin(&mut status.own, cx.clock().now());
                    let message = format!("made {} {}", restore.spec.into.kind, order.name);
                    report(restore, status, News { phase: Phase::Running, reason: "Restoring", message }, cx).await?;
                }
                Err(why) => return fail(restore, status, ("Invalid", why), cx).await,
            },
            Step::Watch(message) => {
                begin(&mut status.own, cx.clock().now());
                report(restore, status, News { phase: Phase::Running, reason: "Restoring", message }, cx).await?;
            }
            Step::Finish { backup, recovered_to } => {
                (status.own.backup, status.own.recovered_to) = (backup, recovered_to);
                return finish(restore, status, cx).await;
            }
            Step::Fail { reason, message } => return fail(restore, status, (reason, message), cx).await,
        }
        Ok(Action::Recheck(LOOK))
    }

    /// Makes the resource. It belongs to nobody: it stays when the restore is deleted.
    async fn make(&self, restore: &Restore, mut target: B::Target, cx: &Context<Restore>) -> Result<(), Error> {
        target.meta_mut().name = Some(restore.spec.into.name.clone());
        target.meta_mut().namespace = restore.namespace();
        target.annotations_mut().insert(MADE_BY.to_owned(), restore.uid().unwrap_or_default());
        let targets: Api<B::Target> = Api::namespaced(cx.client(), &restore.namespace().unwrap_or_default());
        let params = PostParams { field_manager: Some(cx.name().to_owned()), ..PostParams::default() };
        match targets.create(&params, &target).await {
            Ok(_) => Ok(()),
            // Whose it is is seen at the next look.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

async fn finish(restore: &Restore, mut status: Status<RestoreStatus>, cx: &Context<Restore>) -> Result<Action, Error> {
    let now = cx.clock().now();
    begin(&mut status.own, now);
    status.own.phase = Phase::Succeeded;
    status.own.completed_at = Some(now.to_string());
    let started = status.own.started_at.as_ref().and_then(|text| text.parse::<Timestamp>().ok()).unwrap_or(now);
    status.own.duration_seconds = Some(now.duration_since(started).as_millis() as f64 / 1000.0);
    let message = format!("{} {} works", restore.spec.into.kind, restore.spec.into.name);
    report(restore, status, News { phase: Phase::Succeeded, reason: "Succeeded", message: message.clone() }, cx)
        .await?;
    cx.events().record(restore, &(), Event::normal("RestoreSucceeded", message));
    Ok(Action::Await)
}

async fn fail(
    restore: &Restore,
    mut status: Status<RestoreStatus>,
    (reason, message): (&str, String),
    cx: &Context<Restore>,
) -> Result<Action, Error> {
    status.own.phase = Phase::Failed;
    status.own.completed_at = Some(cx.clock().now().to_string());
    status.own.error = Some(message.clone());
    report(restore, status, News { phase: Phase::Failed, reason, message: message.clone() }, cx).await?;
    cx.events().record(restore, &(), Event::warning("RestoreFailed", format!("{reason}: {message}")));
    Ok(Action::Await)
}

fn begin(status: &mut RestoreStatus, now: Timestamp) {
    status.phase = Phase::Running;
    status.started_at.get_or_insert_with(|| now.to_string());
}

fn kind_of(restore: &Restore) -> (&String, &String) {
    (&restore.spec.into.group, &restore.spec.into.kind)
}

fn phase(restore: &Restore) -> Phase {
    restore.status.as_ref().map(|status| status.own.phase).unwrap_or_default()
}

fn is_late(restore: &Restore, now: Timestamp) -> bool {
    let asked = restore.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    now.duration_since(asked) > SignedDuration::from_secs(restore.spec.deadline_seconds.into())
}
