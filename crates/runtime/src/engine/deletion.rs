//! The end of a resource: its cleanup, then its parts in the reverse of their order, then the resource itself; or, if what it is
//! made of is to stay, that is let go.

use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_core::{CustomResource, Event, Operator, condition, names};

use super::act::{Before, Trouble, act};
use super::parts::{Leftover, decide};
use super::report::Pass;
use super::step::{Step, Unwanted};
use super::switch::Switches;
use super::{Engine, UNSEEN_RECHECK, dynamic_api, owner_of};
use crate::journal::{self, Turn};
use crate::reconcile::{Action, Context, Error};

/// A part that takes longer to go is named as what blocks the deletion.
const GOING_MAX: Duration = Duration::from_secs(120);
/// The finalizer by which the API holds an object until its dependents are let go.
const ORPHAN: &str = "orphan";

/// The finalizers of the runtime, in the order of the stages that they stand for.
const STAGES: [&str; 3] = [names::FINALIZER, names::ORDER_FINALIZER, names::RELEASE_FINALIZER];

/// The finalizers of the runtime that `resource` has.
pub(super) fn held_by<R: Resource>(resource: &R) -> Vec<&'static str> {
    let has = |stage: &&str| resource.meta().finalizers.iter().flatten().any(|finalizer| finalizer == stage);
    STAGES.into_iter().filter(has).collect()
}

/// Whether the status of `resource` is from a time when it was paused.
fn is_said_to_be_paused<R: CustomResource>(resource: &R) -> bool {
    resource.status().is_some_and(|status| condition::is_true(&status.conditions, names::condition::PAUSED))
}

impl<O: Operator> Engine<O> {
    /// The finalizers that a resource is to have while it lives.
    pub(super) fn finalizers(&self) -> Vec<&'static str> {
        let has_stage = [self.cleanup.is_some(), self.ordered, self.releases.is_some()];
        STAGES.into_iter().zip(has_stage).filter(|(_, has_it)| *has_it).map(|(stage, _)| stage).collect()
    }

    /// Goes on with the deletion of `resource`. Each stage lets go of its finalizer when it is done, so that none is
    /// repeated, whenever this process ends.
    pub(super) async fn dismiss(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<Action, Error> {
        let held = held_by(resource);
        if held.contains(&names::RELEASE_FINALIZER) && self.releases.is_some_and(|releases| releases(resource)) {
            return self.release(resource, cx).await;
        }
        if held.contains(&names::FINALIZER) {
            if is_said_to_be_paused(resource) {
                self.report(resource, &Pass::Deleting { message: "it cleans up" }, cx).await?;
            }
            self.clean_up(resource, cx).await?;
            let rest: Vec<&str> = held.into_iter().filter(|stage| *stage != names::FINALIZER).collect();
            set_finalizers(resource, &rest, cx).await?;
            return Ok(Action::Await);
        }
        if held.contains(&names::ORDER_FINALIZER) {
            return self.disband(resource, cx).await;
        }
        if !held.is_empty() {
            set_finalizers(resource, &[], cx).await?;
        }
        Ok(Action::Await)
    }

    async fn clean_up(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<(), Error> {
        let Some(cleanup) = self.cleanup else { return Ok(()) };
        let Err(error) = cleanup(&self.operator, resource, cx).await else { return Ok(()) };
        let why = error.to_string();
        journal::decided(Turn::Deleting, "CleanupFailed", &journal::of_error(&error));
        self.record(resource, Event::warning("CleanupFailed", why.clone()), cx);
        self.report(resource, &Pass::DeletionBlocked { reason: "CleanupFailed", why: &why }, cx).await?;
        Err(error)
    }

    /// Removes the parts of `resource`, each when nothing needs it any more, and lets go of the resource when all are gone.
    async fn disband(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<Action, Error> {
        let meta = resource.meta();
        if meta.finalizers.iter().flatten().any(|finalizer| finalizer == ORPHAN) {
            return Ok(Action::Await); // Whoever deleted it wants to keep its parts. They are let go of first.
        }
        if self.nursery.iter().any(|children| children.unseen(meta.namespace.as_deref()).is_some()) {
            return Ok(Action::Recheck(UNSEEN_RECHECK)); // What cannot be seen may be there.
        }
        let owner = owner_of(resource, cx.name(), &Switches::default());
        let mut parts = self.belongings(&owner, |_, _| false);
        parts.retain(|it| it.mark.part.is_some());
        if parts.is_empty() {
            set_finalizers(resource, &[], cx).await?;
            return Ok(Action::Await);
        }
        let leftovers: Vec<Leftover> = parts.iter().map(Unwanted::leftover).collect();
        for index in decide(&[], &leftovers, false).remove {
            match act(&cx.client(), cx.name(), &Step::Delete(parts[index].clone()), Before::Other).await {
                Ok(done) => self.tell_of(resource, done.deed, cx),
                Err(trouble) => return self.blocked(resource, trouble, cx).await,
            }
        }
        self.await_end(resource, &parts, cx).await
    }

    /// A part cannot be deleted.
    async fn blocked(
        &self,
        resource: &O::Resource,
        trouble: Trouble,
        cx: &Context<O::Resource>,
    ) -> Result<Action, Error> {
        let why = trouble.to_string();
        self.record(resource, Event::warning("PartRemains", why.clone()), cx);
        self.report(resource, &Pass::DeletionBlocked { reason: "PartRemains", why: &why }, cx).await?;
        Err(Error::failed(trouble))
    }

    /// Parts are on their way out: their end wakes the resource. It is looked again when that takes too long.
    async fn await_end(
        &self,
        resource: &O::Resource,
        parts: &[Unwanted],
        cx: &Context<O::Resource>,
    ) -> Result<Action, Error> {
        let now = cx.clock().now();
        let late: Vec<String> =
            parts.iter().filter(|part| part.is_late(now, GOING_MAX)).map(Unwanted::hindrance).collect();
        if late.is_empty() {
            let titles: Vec<String> = parts.iter().map(Unwanted::title).collect();
            let message = format!("still there: {}", titles.join(", "));
            journal::decided(Turn::Deleting, "Deleting", &message);
            self.report(resource, &Pass::Deleting { message: &message }, cx).await?;
            return Ok(Action::Recheck(GOING_MAX));
        }
        let why = late.join("; ");
        journal::decided(Turn::Deleting, "PartRemains", &why);
        self.report(resource, &Pass::DeletionBlocked { reason: "PartRemains", why: &why }, cx).await?;
        Ok(Action::Recheck(GOING_MAX))
    }
}

impl Unwanted {
    /// Whether it has been on its way out for longer than `max`.
    fn is_late(&self, now: Timestamp, max: Duration) -> bool {
        self.going_since.is_some_and(|since| now.duration_since(since).unsigned_abs() > max && now > since)
    }

    /// What keeps it, for people.
    fn hindrance(&self) -> String {
        let since = self.going_since.map(|since| since.to_string()).unwrap_or_default();
        let by = match self.finalizers.as_slice() {
            [] => "its Pods or other dependents end".to_owned(),
            finalizers => format!("somebody removes its finalizers {}", finalizers.join(", ")),
        };
        format!("{} is being deleted since {since}: it goes when {by}", self.title())
    }
}

/// Makes the finalizers of the runtime those in `wanted`, and leaves all others.
pub(super) async fn set_finalizers<R: CustomResource>(
    resource: &R,
    wanted: &[&str],
    cx: &Context<R>,
) -> Result<(), Error> {
    let meta = resource.meta();
    let mut finalizers = meta.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| !STAGES.contains(&finalizer.as_str()));
    finalizers.extend(wanted.iter().map(|finalizer| (*finalizer).to_owned()));
    // The list is replaced as a whole, so it must be the one that was read.
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": meta.resource_version}});
    let name = meta.name.as_deref().unwrap_or_default();
    match dynamic_api(resource, cx).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 && wanted.is_empty() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
