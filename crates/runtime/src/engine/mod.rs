//! The engine: carries out what an [`Operator`] wants.

pub(crate) mod act;
mod carry;
mod contains;
mod declaration;
mod declared;
mod deletion;
mod difference;
pub mod handlers;
pub(crate) mod heat;
pub(crate) mod kinds;
mod memory;
mod note;
mod parts;
mod report;
pub(crate) mod step;
mod style;
pub(crate) mod switch;
mod title;
mod upgrade;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Resource};
use windlass_clock::Clock;
use windlass_core::{CustomResource, Event, Operator, Outcome, World};

pub use declaration::Declaration;
pub use declared::{Declared, Use};
pub use style::{Outfit, Style};

use self::act::{Deed, Trouble};
use self::deletion::{held_by, set_finalizers};
use self::kinds::Nursery;
use self::memory::Memory;
use self::note::note;
use self::report::Pass;
use self::step::Owner;
use self::switch::{Counter, Switches};
use self::title::ReleasesFn;
use self::upgrade::{Skill, Way};
use crate::journal::{self, Turn};
use crate::key::ObjectKey;
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
    /// Whether parts have an order.
    ordered: bool,
    /// Whether what a resource is made of stays when it is deleted.
    releases: Option<ReleasesFn<O>>,
    upgrades: Option<Arc<dyn Skill<O::Resource>>>,
    world: World,
    nursery: Nursery,
    memory: Memory,
    counter: Counter,
}

impl<O: Operator> Reconcile for Engine<O> {
    type Resource = O::Resource;

    async fn reconcile(&self, resource: Arc<O::Resource>, cx: &Context<O::Resource>) -> Result<Action, Error> {
        let switches = Switches::of(&*resource);
        self.counter.pause(&ObjectKey::of(&*resource), switches.paused, &cx.handle.metrics);
        if switches.paused {
            journal::decided(Turn::Paused, "Paused", "the annotation windlass.dev/paused is true");
            self.report(&resource, &Pass::Paused, cx).await?;
            return Ok(Action::Await);
        }
        if resource.meta().deletion_timestamp.is_some() {
            journal::decided(Turn::Deleting, "Deleting", "");
            return self.dismiss(&resource, cx).await;
        }
        if let Some(action) = heat::cool_down(&*resource, cx).await? {
            return Ok(action);
        }
        let wanted = self.finalizers();
        if wanted != held_by(&*resource) {
            set_finalizers(&*resource, &wanted, cx).await?;
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
        self.counter.gone(key);
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
        let mut way = self.upgrades.as_ref().map(|skill| Way::choose(&**skill, resource, &world));
        if let Some(way) = way.as_ref().filter(|way| way.turns_back()) {
            return self.turn_back(resource, way, cx).await;
        }
        let mut outcome = self.outcome(resource, way.as_ref(), &world);
        let blind = world.blind();
        if let Some(why) = blind {
            // An answer from what could not be seen is none.
            outcome = Outcome::waiting("WatchFailed", format!("cannot see what there is: {why}"));
        }
        let carried = match outcome.desired() {
            Some(desired) => Some(self.carry_out(resource, desired, switches, cx).await),
            None => None,
        };
        note(&outcome, carried.as_ref());
        match carried {
            Some(Err(Trouble::Outdated)) => return Ok(Action::Recheck(UNSEEN_RECHECK)),
            // What is its own by now was not when the operator was asked.
            Some(Err(Trouble::TakenOver)) => return Ok(Action::Recheck(Duration::ZERO)),
            _ => {}
        }
        self.tell(resource, &outcome, carried.as_ref().and_then(|carried| carried.as_ref().err()), cx);
        if let Some(way) = &mut way {
            way.prove(&outcome, carried.as_ref(), || self.unready(resource));
        }
        let pass = Pass::Made { outcome: &outcome, carried: carried.as_ref(), switches, way: way.as_ref() };
        self.report(resource, &pass, cx).await?;
        if matches!(carried, Some(Ok(_))) {
            self.counter.serve(switches, &cx.handle.metrics);
        }
        let again = way.map_or(Action::Await, |way| self.proclaim(resource, &way, cx));
        match blind {
            Some(_) => Ok(Action::Recheck(UNSEEN_RECHECK)),
            None => Ok(conclude(&outcome, carried.and_then(Result::err), cx.clock())?.sooner(again)),
        }
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
            self.record(resource, Event::warning(trouble.reason(), trouble.to_string()), cx);
        }
        if let Outcome::Invalid { message } = outcome {
            self.record(resource, Event::warning("Invalid", message.clone()), cx);
        }
    }

    /// Says what was done: in the log, and to people if they do not expect it.
    fn tell_of(&self, resource: &O::Resource, deed: Option<Deed>, cx: &Context<O::Resource>) {
        let Some(deed) = deed else { return };
        log(deed.words());
        let observed = resource.status().and_then(|status| status.observed_generation);
        if let Some(event) = deed.event(observed != resource.meta().generation) {
            cx.events().record(resource, &(), event);
        }
    }

    fn record(&self, resource: &O::Resource, event: Event, cx: &Context<O::Resource>) {
        log(&event);
        cx.events().record(resource, &(), event);
    }

    /// Writes the status if it is not what the resource has already.
    async fn report(
        &self,
        resource: &O::Resource,
        pass: &Pass<'_, O::Resource>,
        cx: &Context<O::Resource>,
    ) -> Result<(), Error> {
        let status = report::status(resource, pass, cx.clock().now());
        report::write(resource, status, cx).await
    }
}

fn log(event: &Event) {
    tracing::info!(reason = %event.reason, "{}", event.message);
}

fn conclude<S>(outcome: &Outcome<S>, trouble: Option<Trouble>, clock: &Clock) -> Result<Action, Error> {
    match (trouble, outcome) {
        (Some(Trouble::Refused(_)), _) => Ok(Action::Recheck(REFUSED_RECHECK)),
        (Some(Trouble::Unseen(_) | Trouble::Outdated | Trouble::TakenOver), _) => Ok(Action::Recheck(UNSEEN_RECHECK)),
        (Some(trouble @ Trouble::Api { .. }), _) => Err(Error::failed(trouble)),
        (None, Outcome::Invalid { message }) => Err(Error::Invalid(message.clone())),
        (None, Outcome::Retry { after, message }) => Err(Error::Later { after: *after, why: message.clone() }),
        (None, Outcome::Settled(_) | Outcome::Waiting { .. }) => {
            let recheck = outcome.desired().and_then(|desired| desired.recheck);
            Ok(recheck.map_or(Action::Await, |interval| Action::Recheck(interval.mul_f64(clock.spread(0.9..1.1)))))
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

fn dynamic_api<R: CustomResource>(resource: &R, cx: &Context<R>) -> Api<DynamicObject> {
    act::api(&cx.client(), &ApiResource::erase::<R>(&()), resource.meta().namespace.as_deref())
}
