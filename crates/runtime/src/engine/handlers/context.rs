//! What a handler may use besides the resource.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::core::ApiResource;
use kube::{Client, Resource};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_core::{Child, CustomResource, Event, World};

use super::answer::Failure;
use super::decide::Cause;
use crate::engine::act::{Before, Deed, Trouble, act, keep};
use crate::engine::kinds::Nursery;
use crate::engine::step::{Owner, Refusal, Step, Unwanted};
use crate::engine::{REFUSED_RECHECK, UNSEEN_RECHECK};
use crate::informer::Informer;
use crate::key::ObjectKey;
use crate::queue::{Priority, Queue};
use crate::reconcile::Handle;

/// What a handler may use besides the resource; clones are the same.
pub struct HandlerContext<R: CustomResource>(Arc<Inner<R>>);

impl<R: CustomResource> Clone for HandlerContext<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<R: CustomResource> {
    surroundings: Surroundings<R>,
    cause: Cause,
    attempt: u32,
    stop: CancellationToken,
}

/// What all handlers of one resource share.
#[derive(Clone)]
pub(super) struct Surroundings<R: CustomResource> {
    pub(super) handle: Handle,
    pub(super) informer: Informer<R>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) resource: Arc<R>,
    pub(super) owner: Owner,
    pub(super) nursery: Nursery,
    pub(super) world: World,
    pub(super) desk: Arc<Desk<R::Status>>,
}

/// The author's part of a status until it is written.
#[derive(Debug)]
pub(super) struct Desk<S>(Mutex<Option<S>>);

impl<S> Default for Desk<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S: Clone> Desk<S> {
    pub(super) fn put(&self, status: S) {
        *self.lock() = Some(status);
    }

    /// Changes what is to be written, or what `current` finds if there is nothing yet.
    fn change(&self, current: impl FnOnce() -> S, change: impl FnOnce(&mut S)) {
        change(self.lock().get_or_insert_with(current));
    }

    pub(super) fn look(&self) -> Option<S> {
        self.lock().clone()
    }

    /// It was written; what came after it stays.
    pub(super) fn clear(&self, written: &Option<S>)
    where
        S: PartialEq,
    {
        let mut status = self.lock();
        if *status == *written {
            *status = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<S>> {
        // An author's code runs under it; a panic there leaves a status as good as any.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: CustomResource> HandlerContext<R> {
    pub(super) fn new(surroundings: Surroundings<R>, cause: Cause, attempt: u32, stop: CancellationToken) -> Self {
        Self(Arc::new(Inner { surroundings, cause, attempt, stop }))
    }

    /// Why the handler runs.
    pub fn cause(&self) -> Cause {
        self.0.cause
    }

    /// Which attempt this is, beginning with 1; it counts on over restarts.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The newest known state of the resource: that of a daemon, or of a handler that takes long, may have changed. None
    /// if it is gone.
    pub fn current(&self) -> Option<Arc<R>> {
        let Surroundings { informer, resource, .. } = &self.0.surroundings;
        informer.get(&ObjectKey::of(&**resource)).filter(|now| now.meta().uid == resource.meta().uid)
    }

    /// Makes `object` as it is here: server-side, under the operator's name, owned by the resource, and only if something
    /// differs. Its kind must be declared (`owns`). Unlike what an `Operator` wants, it is not kept so afterwards.
    ///
    /// # Errors
    /// When the API refuses it, when the object is somebody else's, and for a daemon while the resource is in a hot loop.
    pub async fn apply<K: Resource<DynamicType = ()> + Serialize>(&self, object: K) -> Result<(), Failure> {
        let Surroundings { nursery, owner, handle, .. } = &self.0.surroundings;
        let child = Child::new(&object).map_err(Failure::permanent)?;
        self.cool_down()?;
        let deed = keep(&handle.client, nursery, owner, child).await.map_err(failed)?;
        self.tell_of(deed);
        Ok(())
    }

    /// Other handlers do not run while the resource is in a loop; a daemon does, and may be what is fighting.
    fn cool_down(&self) -> Result<(), Failure> {
        let Surroundings { handle, resource, .. } = &self.0.surroundings;
        let loops = handle.loops.as_ref().filter(|_| self.0.cause == Cause::Daemon);
        match loops.and_then(|loops| loops.hot(resource.meta().uid.as_deref()?)) {
            Some(hot) => Err(Failure::retry_after(hot.until.saturating_sub(self.clock().elapsed()), hot.message)),
            None => Ok(()),
        }
    }

    /// Deletes the object of kind `K` with this name, if the resource owns it; its kind must be declared (`owns`).
    ///
    /// # Errors
    /// When the API refuses it, and when the object is somebody else's.
    pub async fn delete<K: Resource<DynamicType = ()>>(&self, name: &str) -> Result<(), Failure> {
        let Surroundings { nursery, owner, handle, .. } = &self.0.surroundings;
        let resource = ApiResource::erase::<K>(&());
        let undeclared = || Trouble::from(Refusal::Undeclared { kind: resource.kind.clone() });
        let cache = nursery.of(&resource).ok_or_else(undeclared).map_err(failed)?;
        if let Some(why) = cache.unseen(owner.namespace.as_deref()) {
            return Err(failed(Trouble::Unseen(why)));
        }
        let key = ObjectKey { namespace: owner.namespace.clone(), name: name.to_owned() };
        let Some(live) = cache.live(&key) else { return Ok(()) };
        let meta = live.meta().clone();
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        if !owner.made(&meta) {
            return Err(Failure::permanent(format!("{} {name} is not this resource's to delete", resource.kind)));
        }
        let Some(unwanted) = Unwanted::of(&resource, meta) else { return Ok(()) };
        let step = Step::Delete(unwanted);
        self.tell_of(act(&handle.client, &owner.manager, &step, Before::Other).await.map_err(failed)?.deed);
        Ok(())
    }

    /// Changes the author's part of the status; it is written when the handler ends, and soon for a daemon.
    pub fn update_status(&self, change: impl FnOnce(&mut R::Status)) {
        let Surroundings { desk, queue, resource, .. } = &self.0.surroundings;
        let own = |resource: Arc<R>| resource.status().map(|status| status.own.clone());
        desk.change(|| self.current().and_then(own).unwrap_or_default(), change);
        if self.0.cause == Cause::Daemon {
            queue.add(ObjectKey::of(&**resource), Priority::Normal);
        }
    }

    /// Tells people something about the resource.
    pub fn event(&self, event: Event) {
        self.log(&event);
        let Surroundings { handle, resource, .. } = &self.0.surroundings;
        handle.events.record(&**resource, &(), event);
    }

    /// Says what was done: in the log, and to people if they do not expect it.
    fn tell_of(&self, deed: Option<Deed>) {
        let Some(deed) = deed else { return };
        self.log(deed.words());
        let spec_is_new = matches!(self.0.cause, Cause::Create | Cause::Update | Cause::Field);
        if let Some(event) = deed.event(spec_is_new) {
            let Surroundings { handle, resource, .. } = &self.0.surroundings;
            handle.events.record(&**resource, &(), event);
        }
    }

    fn log(&self, event: &Event) {
        let resource = ObjectKey::of(&*self.0.surroundings.resource);
        tracing::info!(%resource, reason = %event.reason, "{}", event.message);
    }

    /// The declared kinds, as the caches know them.
    pub fn world(&self) -> World {
        self.0.surroundings.world.clone().at(self.clock().now())
    }

    /// The API. Every call is seen by the tap.
    pub fn client(&self) -> Client {
        self.0.surroundings.handle.client.clone()
    }

    /// The time.
    pub fn clock(&self) -> &Clock {
        &self.0.surroundings.handle.clock
    }

    /// The operator's name, which is also its field manager.
    pub fn name(&self) -> &str {
        &self.0.surroundings.handle.name
    }

    /// Cancelled when the handler is to end: the process stops or no longer leads; for a daemon also when the resource is to
    /// go, or is paused.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Waits, and tells whether to go on: not if the handler is to end.
    pub async fn sleep(&self, duration: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.0.stop.cancelled() => false,
            () = self.clock().sleep(duration) => true,
        }
    }
}

/// What comes after a child that could not be made or deleted.
fn failed(trouble: Trouble) -> Failure {
    match &trouble {
        Trouble::Refused(_) => Failure::retry_after(REFUSED_RECHECK, &trouble),
        Trouble::Unseen(_) | Trouble::Outdated | Trouble::TakenOver => Failure::retry_after(UNSEEN_RECHECK, &trouble),
        Trouble::Api { .. } => Failure::from(trouble),
    }
}
