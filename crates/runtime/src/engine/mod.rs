//! The engine: carries out what an [`Operator`] wants.

mod act;
mod declaration;
mod difference;
pub mod handlers;
mod kinds;
mod memory;
mod note;
mod report;
mod step;
mod style;
mod switch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Resource};
use serde_json::json;
use windlass_core::{Child, CustomResource, Desired, Event, Operator, Outcome, World, names};

pub use declaration::{Declaration, Declared, Use};
pub use style::{Parts, Style};

use self::act::{Before, Trouble, act, keep};
use self::kinds::Nursery;
use self::memory::Memory;
use self::note::note;
use self::report::Pass;
use self::step::{Owner, Step, Unwanted};
use self::switch::{Paused, Switches};
use crate::journal::{self, Turn};
use crate::key::ObjectKey;
use crate::loops::Hot;
use crate::reconcile::{Action, Context, Crash, Error, Reconcile};

/// A child that a person has to decide about is looked at again after this time: nothing may tell of their decision.
const REFUSED_RECHECK: Duration = Duration::from_secs(60);
/// A resource that depends on what cannot be seen is looked at again after this time.
const UNSEEN_RECHECK: Duration = Duration::from_secs(2);

/// An operator that has something to do before a resource may go. While it is declared, resources carry a finalizer.
pub trait Cleanup: Operator {
    /// Removes what is outside of the cluster. It is repeated until it succeeds.
    fn cleanup(
        &self,
        resource: &Self::Resource,
        context: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

type CleanupFn<O> = for<'a> fn(
    &'a O,
    &'a <O as Style>::Resource,
    &'a Context<<O as Style>::Resource>,
) -> BoxFuture<'a, Result<(), Error>>;

fn call_cleanup<'a, O: Cleanup>(
    operator: &'a O,
    resource: &'a O::Resource,
    context: &'a Context<O::Resource>,
) -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(operator.cleanup(resource, context))
}

/// Reconciles the resources of an operator: carries out what it wants.
pub struct Engine<O: Operator> {
    operator: Arc<O>,
    cleanup: Option<CleanupFn<O>>,
    world: World,
    nursery: Nursery,
    memory: Memory,
    /// The controller's name, for metrics.
    name: String,
    paused: Paused,
}

impl<O: Operator> Reconcile for Engine<O> {
    type Resource = O::Resource;

    async fn reconcile(&self, resource: Arc<O::Resource>, cx: &Context<O::Resource>) -> Result<Action, Error> {
        let meta = resource.meta();
        let has_finalizer = meta.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER);
        if meta.deletion_timestamp.is_some() {
            journal::decided(Turn::Deleting, "Deleting", "");
            return if has_finalizer { self.clean_up(&resource, cx).await } else { Ok(Action::Await) };
        }
        let switches = Switches::of(&*resource);
        self.paused.note(&ObjectKey::of(&*resource), switches.paused, &cx.handle.metrics, &self.name);
        if switches.paused {
            journal::decided(Turn::Paused, "Paused", "the annotation windlass.dev/paused is true");
            self.report(&resource, &Pass::Paused, cx).await?;
            return Ok(Action::Await);
        }
        if let Some(hot) = self.hot(&resource, cx) {
            journal::decided(Turn::HotLoop, "HotLoop", &hot.field);
            self.report(&resource, &Pass::HotLoop { message: &hot.message }, cx).await?;
            return Ok(Action::Recheck(hot.until.saturating_sub(cx.clock().elapsed())));
        }
        if self.cleanup.is_some() != has_finalizer {
            set_finalizer(&*resource, self.cleanup.is_some(), cx).await?;
        }
        self.pass(&resource, &switches, cx).await
    }

    async fn crashed(&self, resource: Arc<O::Resource>, crash: &Crash, cx: &Context<O::Resource>) {
        if let Err(error) = self.report(&resource, &Pass::Crashed(crash), cx).await {
            tracing::warn!(%error, "Cannot report a crash in the status");
        }
    }

    fn gone(&self, key: &ObjectKey) {
        self.memory.forget(key);
        self.paused.forget(key);
    }
}

impl<O: Operator> Engine<O> {
    /// Asks the operator once, and does what it wants.
    async fn pass(
        &self,
        resource: &O::Resource,
        switches: &Switches,
        cx: &Context<O::Resource>,
    ) -> Result<Action, Error> {
        let world = self.world.clone().at(cx.clock().now());
        let mut outcome = self.operator.desired(resource, &world);
        let blind = world.blind();
        if let Some(why) = blind {
            // An answer from what could not be seen is none.
            outcome = Outcome::waiting("WatchFailed", format!("cannot see what there is: {why}"));
        }
        let trouble = match outcome.desired() {
            Some(desired) => self.carry_out(resource, desired, switches, cx).await.err(),
            None => None,
        };
        note(&outcome, trouble.as_ref());
        self.tell(resource, &outcome, trouble.as_ref(), cx);
        let pass = Pass::Made { outcome: &outcome, trouble: trouble.as_ref(), switches };
        self.report(resource, &pass, cx).await?;
        if trouble.is_none() && outcome.desired().is_some() {
            switches.count(&cx.handle.metrics, &self.name);
        }
        match blind {
            Some(_) => Ok(Action::Recheck(UNSEEN_RECHECK)),
            None => conclude(&outcome, trouble),
        }
    }

    /// The loop that the resource is in. A new spec is acted on at once: it may be what ends the loop.
    fn hot(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Option<Hot> {
        let meta = resource.meta();
        let observed = resource.status().and_then(|status| status.observed_generation);
        let loops = cx.handle.loops.as_ref().filter(|_| observed == meta.generation)?;
        loops.hot(meta.uid.as_deref()?)
    }

    /// Applies all children, then removes what is no longer wanted. After any trouble nothing is removed: "not wanted"
    /// and "not reached" look the same from here.
    async fn carry_out(
        &self,
        resource: &O::Resource,
        desired: &Desired<<O::Resource as CustomResource>::Status>,
        switches: &Switches,
        cx: &Context<O::Resource>,
    ) -> Result<(), Trouble> {
        let owner = owner_of(resource, cx.name(), switches);
        let (key, uid) = (ObjectKey::of(resource), owner.reference.uid.clone());
        let mut children = Vec::new();
        let mut trouble = None;
        for child in &desired.children {
            let before = |child: &Child| self.memory.before(&key, &uid, child);
            let done = keep(&cx.client(), &self.nursery, &owner, child.clone(), before).await;
            match done {
                Ok((child, event)) => {
                    children.push(child);
                    self.record(resource, event, cx);
                }
                Err(failure) => trouble = trouble.or(Some(failure)),
            }
        }
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        for unwanted in self.unwanted(&owner, &children) {
            let event = act(&cx.client(), cx.name(), &Step::Delete(unwanted), Before::Other).await?;
            self.record(resource, event, cx);
        }
        for event in self.memory.passed(&key, &uid, &children, &desired.events) {
            self.record(resource, Some(event), cx);
        }
        Ok(())
    }

    /// What this owner has of the declared kinds, but does not want.
    fn unwanted(&self, owner: &Owner, wanted: &[Child]) -> Vec<Unwanted> {
        let is_wanted = |resource: &ApiResource, name: &str, namespace: Option<&str>| {
            wanted.iter().any(|child| {
                let same_kind = child.resource.group == resource.group && child.resource.kind == resource.kind;
                same_kind && child.name == name && child.namespace.as_deref() == namespace
            })
        };
        let mut unwanted = Vec::new();
        for children in self.nursery.iter() {
            let resource = children.resource();
            for meta in children.owned_by(&owner.reference.uid).into_iter().filter(|meta| owner.may_prune(meta)) {
                let (Some(name), Some(uid)) = (meta.name, meta.uid) else { continue };
                if !is_wanted(&resource, &name, meta.namespace.as_deref()) {
                    unwanted.push(Unwanted { resource: resource.clone(), namespace: meta.namespace, name, uid });
                }
            }
        }
        unwanted
    }

    async fn clean_up(&self, resource: &O::Resource, cx: &Context<O::Resource>) -> Result<Action, Error> {
        if let Some(cleanup) = self.cleanup
            && let Err(error) = cleanup(&self.operator, resource, cx).await
        {
            let why = error.to_string();
            journal::decided(Turn::Deleting, "CleanupFailed", &journal::of_error(&error));
            self.record(resource, Some(Event::warning("CleanupFailed", why.clone())), cx);
            self.report(resource, &Pass::DeletionBlocked { why: &why }, cx).await?;
            return Err(error);
        }
        set_finalizer(resource, false, cx).await?;
        Ok(Action::Await)
    }

    /// Warnings about a pass that did not succeed.
    fn tell(
        &self,
        resource: &O::Resource,
        outcome: &Outcome<<O::Resource as CustomResource>::Status>,
        trouble: Option<&Trouble>,
        cx: &Context<O::Resource>,
    ) {
        if let Some(trouble) = trouble {
            self.record(resource, Some(Event::warning(trouble.reason(), trouble.to_string())), cx);
        }
        if let Outcome::Invalid { message } = outcome {
            self.record(resource, Some(Event::warning("Invalid", message.clone())), cx);
        }
    }

    fn record(&self, resource: &O::Resource, event: Option<Event>, cx: &Context<O::Resource>) {
        if let Some(event) = event {
            tracing::info!(reason = %event.reason, "{}", event.message);
            cx.events().record(resource, &(), event);
        }
    }

    /// Writes the status if it is not what the resource has already.
    async fn report(
        &self,
        resource: &O::Resource,
        pass: &Pass<'_, <O::Resource as CustomResource>::Status>,
        cx: &Context<O::Resource>,
    ) -> Result<(), Error> {
        let status = report::status(resource, pass, cx.clock().now());
        report::write(resource, status, cx).await
    }
}

fn conclude<S>(outcome: &Outcome<S>, trouble: Option<Trouble>) -> Result<Action, Error> {
    match (trouble, outcome) {
        (Some(Trouble::Refused(_)), _) => Ok(Action::Recheck(REFUSED_RECHECK)),
        (Some(Trouble::Unseen(_)), _) => Ok(Action::Recheck(UNSEEN_RECHECK)),
        (Some(trouble @ Trouble::Api { .. }), _) => Err(Error::failed(trouble)),
        (None, Outcome::Invalid { message }) => Err(Error::Invalid(message.clone())),
        (None, Outcome::Retry { after, message }) => Err(Error::Later { after: *after, why: message.clone() }),
        (None, Outcome::Settled(_) | Outcome::Waiting { .. }) => {
            let recheck = outcome.desired().and_then(|desired| desired.recheck);
            Ok(recheck
                .map_or(Action::Await, |interval| Action::Recheck(interval.mul_f64(rand::random_range(0.9..1.1)))))
        }
    }
}

fn owner_of<R: CustomResource>(resource: &R, manager: &str, switches: &Switches) -> Owner {
    let reference = resource.controller_owner_ref(&()).expect("an object of the API has a name and a uid");
    Owner {
        reference,
        namespace: resource.meta().namespace.clone(),
        manager: manager.to_owned(),
        force: switches.force.is_some(),
        restarted_at: switches.restarted_at.clone(),
    }
}

async fn set_finalizer<R: CustomResource>(resource: &R, wanted: bool, cx: &Context<R>) -> Result<(), Error> {
    let meta = resource.meta();
    let mut finalizers = meta.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != names::FINALIZER);
    if wanted {
        finalizers.push(names::FINALIZER.to_owned());
    }
    // The list is replaced as a whole, so it must be the one that was read.
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": meta.resource_version}});
    let name = meta.name.as_deref().unwrap_or_default();
    match dynamic_api(resource, cx).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 && !wanted => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn dynamic_api<R: CustomResource>(resource: &R, cx: &Context<R>) -> Api<DynamicObject> {
    let api_resource = ApiResource::erase::<R>(&());
    match resource.meta().namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(cx.client(), namespace, &api_resource),
        None => Api::all_with(cx.client(), &api_resource),
    }
}
