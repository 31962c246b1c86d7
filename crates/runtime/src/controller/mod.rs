//! A controller: watches that put keys into a queue, and workers that take them out.

mod run;
mod sources;
mod worker;
mod workshop;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use tokio_util::sync::CancellationToken;
use windlass_core::Event;

pub(crate) use self::worker::panic_text;
use self::workshop::{Source, Workshop};
use crate::activity::Activity;
use crate::backoff::Backoff;
use crate::cache::Change;
use crate::follow::Follows;
use crate::informer::Informer;
use crate::journal::{self, Seen, Served, Subject, Turn};
use crate::key::ObjectKey;
use crate::manager::Manager;
use crate::object::Object;
use crate::owners::owner_keys;
use crate::queue::Queue;
use crate::reconcile::{Action, Attempt, Context, Crash, Error, Handle, Process, Reconcile};
use crate::shards::Division;
use crate::watch::Watch;

/// A controller under construction; [`Manager::add`] puts it to work.
pub struct Controller<P: Process> {
    process: P,
    workshop: Workshop<P::Key>,
}

impl<P: Process> Controller<P> {
    /// A controller of keys of any type, which nothing feeds yet.
    pub fn keyed(manager: &Manager, name: impl Into<String>, process: P) -> Self {
        let (name, handle) = (name.into(), manager.handle());
        let queue = queue_of(&handle, &name);
        Self::with_queue(handle, name, queue, process)
    }

    fn with_queue(handle: Handle, name: String, queue: Queue<P::Key>, process: P) -> Self {
        Self { process, workshop: Workshop::new(handle, name, queue) }
    }

    /// The queue, for sources other than watches.
    pub fn queue(&self) -> Queue<P::Key> {
        self.workshop.queue.clone()
    }

    /// Puts the keys that `map` finds for a change into the queue.
    #[must_use]
    pub fn on<K: Object, I>(
        mut self,
        informer: &Informer<K>,
        map: impl Fn(&Change<K>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = P::Key>,
    {
        let subscription = self.workshop.queue.follow(informer, map);
        let (informer, other) = (informer.clone(), informer.clone());
        self.workshop.sources.push(Source {
            synced: Box::pin(async move { informer.synced().await }),
            settled: Box::pin(async move { other.settled().await }),
            subscription,
        });
        self
    }

    /// Begins although a watch fails, but for the first. Without this, nothing begins before all caches are complete; with
    /// it, a run must ask [`Informer::unseen`] before it takes a cache for the truth.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.workshop.lenient = true;
        self
    }

    /// How many keys are worked on at the same time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workshop.workers = workers.max(1);
        self
    }

    /// How long one run may take before it is dropped and counts as failed.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.workshop.deadline = deadline;
        self
    }

    /// Lets `activity` look at it.
    pub(crate) fn show(&self, activity: &Activity) {
        let queue = self.queue();
        activity.add(self.workshop.begun.clone(), move || queue.is_idle());
    }

    /// Works until `stop`, then lets the runs in progress end.
    pub(crate) fn run(self, stop: CancellationToken, division: Option<Arc<Division>>) -> BoxFuture<'static, ()> {
        Box::pin(self.workshop.run(Arc::new(self.process), stop, division))
    }
}

fn queue_of<Q: crate::queue::Key>(handle: &Handle, name: &str) -> Queue<Q> {
    let is_asked_why = handle.runs.is_some() || handle.tracer.is_some();
    Queue::build(handle.clock.clone(), Backoff::default(), handle.metrics.queue(name), is_asked_why)
}

impl<R: Reconcile> Controller<ByObject<R>>
where
    <R::Resource as Resource>::DynamicType: Default,
{
    /// A controller of the objects of one kind, all of them.
    pub fn of(manager: &Manager, reconcile: R) -> Self {
        Self::within(manager, Watch::all(), reconcile)
    }
}

impl<R: Reconcile> Controller<ByObject<R>> {
    /// A controller of the objects of one watch.
    pub fn within(manager: &Manager, watch: Watch<R::Resource>, reconcile: R) -> Self {
        Self::in_cluster(&manager.handle(), watch, reconcile)
    }

    /// A controller of the objects of one watch in a cluster of the manager: see [`Manager::cluster`].
    pub fn in_cluster(cluster: &Handle, watch: Watch<R::Resource>, reconcile: R) -> Self {
        let owner_type = watch.dyntype().clone();
        let name = cluster.name_of(&R::Resource::kind(&owner_type).to_lowercase());
        let informer = cluster.informers.get(watch);
        let queue = queue_of(cluster, &name);
        let follows = Follows::new(queue.clone());
        let process = ByObject { reconcile, informer: informer.clone(), handle: cluster.clone(), owner_type, follows };
        let served = Served {
            controller: name.clone(),
            group: R::Resource::group(&process.owner_type).into_owned(),
            kind: R::Resource::kind(&process.owner_type).into_owned(),
        };
        cluster.served.lock().expect("no code that can panic runs under this lock").push(served);
        Self::with_queue(cluster.clone(), name, queue, process).on(&informer, |change| [change.key()])
    }

    /// Looks at every object again after about `interval`, even if nothing changes: each at a moment of its own, and behind
    /// what did change.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        let informer = self.process.informer.clone();
        self.workshop
            .feeders
            .push(Box::new(move |queue, handle| Box::pin(sources::resync(informer, interval, queue, handle))));
        self
    }

    /// Also reconciles the owner of a changed object, found by its controller reference.
    #[must_use]
    pub fn owns<C: Object>(self, informer: &Informer<C>) -> Self {
        let owner_type = self.process.owner_type.clone();
        self.on(informer, move |change| owner_keys::<R::Resource, C>(change, &owner_type))
    }

    /// The cache of the reconciled kind, for mappers.
    pub fn informer(&self) -> Informer<R::Resource> {
        self.process.informer.clone()
    }

    /// Another name for logs and metrics than the kind in lowercase: for a second controller of the same kind.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.workshop.rename(&name.into());
        self
    }
}

/// Work on the objects of one kind, by their names.
pub struct ByObject<R: Reconcile> {
    reconcile: R,
    informer: Informer<R::Resource>,
    handle: Handle,
    owner_type: <R::Resource as Resource>::DynamicType,
    follows: Follows,
}

impl<R: Reconcile> ByObject<R> {
    fn context(&self, key: &ObjectKey, attempt: &Attempt) -> Context<R::Resource> {
        Context {
            handle: self.handle.clone(),
            informer: self.informer.clone(),
            attempt: attempt.clone(),
            wishes: self.follows.wishes(key.clone()),
            forced: AtomicBool::default(),
        }
    }
}

impl<R: Reconcile> Process for ByObject<R> {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, attempt: &Attempt) -> Result<Action, Error> {
        let Some(object) = self.informer.get(key) else {
            self.follows.forget(key);
            self.reconcile.gone(key);
            journal::decided(Turn::Gone, "Gone", "");
            return Ok(Action::Await);
        };
        journal::saw(|| seen(&*object, &self.owner_type));
        let context = self.context(key, attempt);
        let action = self.reconcile.reconcile(object, &context).await?;
        context.wishes.settle();
        Ok(action)
    }

    async fn crashed(&self, key: &ObjectKey, crash: &Crash, attempt: &Attempt) {
        let Some(object) = self.informer.get(key) else { return };
        let event = Event::warning(crash.reason(), crash.to_string());
        self.handle.events.record(&*object, &self.owner_type, event);
        self.reconcile.crashed(object, crash, &self.context(key, attempt)).await;
    }

    fn subject(&self, key: &ObjectKey) -> Option<Subject> {
        Some(Subject {
            group: R::Resource::group(&self.owner_type).into_owned(),
            kind: R::Resource::kind(&self.owner_type).into_owned(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            cluster: self.handle.cluster.as_deref().map(str::to_owned),
        })
    }

    fn exists(&self, key: &ObjectKey) -> bool {
        self.informer.contains(key)
    }

    async fn ended(&self) {
        self.reconcile.ended().await;
    }
}

/// The version of an object that a run looks at.
fn seen<K: Object>(object: &K, dyntype: &K::DynamicType) -> Seen {
    let meta = object.meta();
    Seen {
        kind: K::kind(dyntype).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        version: meta.resource_version.clone().unwrap_or_default(),
        generation: meta.generation,
    }
}

impl<P: Process> Debug for Controller<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Workshop { name, workers, .. } = &self.workshop;
        f.debug_struct("Controller").field("name", name).field("workers", workers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
