//! A controller: watches that put keys into a queue, and workers that take them out.

mod run;
mod sources;
mod worker;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Resource;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_core::Event;

use self::sources::Feeder;
use self::worker::Worker;
pub(crate) use self::worker::panic_text;
use crate::activity::Activity;
use crate::backoff::Backoff;
use crate::cache::Change;
use crate::follow::Follows;
use crate::informer::{Informer, Subscription};
use crate::journal::{self, Seen, Served, Subject, Trigger, Turn};
use crate::key::ObjectKey;
use crate::manager::Manager;
use crate::metrics::ControllerMetrics;
use crate::object::Object;
use crate::owners::owner_keys;
use crate::queue::{Priority, Queue};
use crate::reconcile::{Action, Attempt, Context, Crash, Error, Handle, Process, Reconcile};
use crate::shards::{Division, Shards};
use crate::watch::Watch;

/// How many keys of one controller are worked on at the same time, unless said otherwise.
const WORKERS: usize = 4;
/// How long one reconcile may take, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(300);

/// A run that goes on for this long after its deadline does not end by itself: the report of a crash has its time in it.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A controller under construction; [`Manager::add`] puts it to work.
pub struct Controller<P: Process> {
    name: String,
    process: P,
    queue: Queue<P::Key>,
    metrics: ControllerMetrics,
    handle: Handle,
    workers: usize,
    deadline: Duration,
    lenient: bool,
    sources: Vec<Source>,
    feeders: Vec<Feeder<P::Key>>,
    /// Set when all that is watched has been read.
    begun: Arc<AtomicBool>,
}

/// A watch that feeds a controller, and the waits for its first list.
struct Source {
    synced: BoxFuture<'static, ()>,
    settled: BoxFuture<'static, ()>,
    subscription: Subscription,
}

impl<P: Process> Controller<P> {
    /// A controller of keys of any type, which nothing feeds yet.
    pub fn keyed(manager: &Manager, name: impl Into<String>, process: P) -> Self {
        let (name, handle) = (name.into(), manager.handle());
        let queue = queue_of(&handle, &name);
        Self::with_queue(handle, name, queue, process)
    }

    fn with_queue(handle: Handle, name: String, queue: Queue<P::Key>, process: P) -> Self {
        let metrics = handle.metrics.controller(&name);
        Self {
            name,
            process,
            queue,
            metrics,
            handle,
            workers: WORKERS,
            deadline: DEADLINE,
            lenient: false,
            sources: Vec::new(),
            feeders: Vec::new(),
            begun: Arc::default(),
        }
    }

    /// The queue, for sources other than watches.
    pub fn queue(&self) -> Queue<P::Key> {
        self.queue.clone()
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
        let subscription = self.queue.follow(informer, map);
        let (informer, other) = (informer.clone(), informer.clone());
        self.sources.push(Source {
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
        self.lenient = true;
        self
    }

    /// How many keys are worked on at the same time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How long one run may take before it is dropped and counts as failed.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Lets `activity` look at it.
    pub(crate) fn show(&self, activity: &Activity) {
        let queue = self.queue.clone();
        activity.add(self.begun.clone(), move || queue.is_idle());
    }

    /// Works until `stop`, then lets the runs in progress end.
    pub(crate) async fn run(self, stop: CancellationToken, division: Option<Arc<Division>>) {
        let mut subscriptions = Vec::new();
        for (index, source) in self.sources.into_iter().enumerate() {
            let ready = if self.lenient && index > 0 { source.settled } else { source.synced };
            tokio::select! {
                () = ready => subscriptions.push(source.subscription),
                () = stop.cancelled() => return,
            }
        }
        tracing::debug!(controller = %self.name, workers = self.workers, "Starting workers");
        self.begun.store(true, Ordering::SeqCst);
        self.metrics.max_workers.set(self.workers as i64);
        let queue = self.queue.clone();
        self.handle.metrics.work_in_progress(&self.name, Box::new(move || queue.in_progress()));
        self.handle.health.vital(format!("workers of {}", self.name), stuck(self.queue.clone(), self.deadline));
        let mut feeders = JoinSet::new();
        for feeder in self.feeders {
            feeders.spawn(feeder(self.queue.clone(), self.handle.clone()));
        }
        let queue = self.queue.clone();
        let look = move |key| queue.add_for(key, Priority::Low, || Trigger::Shard);
        let worker = Arc::new(Worker {
            name: self.name,
            process: self.process,
            queue: self.queue.clone(),
            metrics: self.metrics,
            deadline: self.deadline,
            handle: self.handle.clone(),
            stop: stop.clone(),
            shards: division.map(|division| Shards::new(division, look)),
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let worker = worker.clone();
            workers.spawn(async move { worker.run().await });
        }
        stop.cancelled().await;
        feeders.abort_all();
        self.queue.close();
        while workers.join_next().await.is_some() {}
        worker.process.ended().await;
    }
}

/// Finds a run that goes on long after it should have been ended: it computes without a pause, and only a new process
/// gets its worker back.
fn stuck<Q: crate::queue::Key>(queue: Queue<Q>, deadline: Duration) -> impl Fn() -> Option<String> + Send + Sync {
    move || {
        let longest = queue.in_progress().into_iter().max()?;
        let is_stuck = longest > deadline.saturating_add(STUCK_AFTER);
        is_stuck.then(|| format!("a run goes on for {}s, and cannot be ended", longest.as_secs()))
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
        self.feeders.push(Box::new(move |queue, handle| Box::pin(sources::resync(informer, interval, queue, handle))));
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
        self.name = self.handle.name_of(&name.into());
        self.metrics = self.handle.metrics.controller(&self.name);
        self.queue.count_as(self.handle.metrics.queue(&self.name));
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
        self.informer.get(key).is_some()
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
        f.debug_struct("Controller").field("name", &self.name).field("workers", &self.workers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
