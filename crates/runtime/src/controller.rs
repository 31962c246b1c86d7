//! A controller: watches that put keys into a queue, and workers that take them out.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Resource;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::backoff::Backoff;
use crate::cache::Change;
use crate::informer::{Informer, Subscription};
use crate::key::ObjectKey;
use crate::manager::Manager;
use crate::metrics::{ControllerMetrics, Metrics};
use crate::object::Object;
use crate::owners::owner_keys;
use crate::queue::{Priority, Queue, Taken, Verdict};
use crate::reconcile::{Action, Attempt, Context, Error, Handle, Process, Reconcile};
use crate::watch::Watch;

/// How many keys of one controller are worked on at the same time, unless said otherwise.
const WORKERS: usize = 4;
/// How long one reconcile may take, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(300);

/// A controller under construction; [`Manager::add`] puts it to work.
pub struct Controller<P: Process> {
    name: String,
    process: P,
    queue: Queue<P::Key>,
    metrics: ControllerMetrics,
    all_metrics: Metrics,
    workers: usize,
    deadline: Duration,
    sources: Vec<Source>,
    /// Set when all that is watched has been read.
    begun: Arc<AtomicBool>,
}

/// A watch that feeds a controller, and the wait for its first list.
struct Source {
    synced: BoxFuture<'static, ()>,
    subscription: Subscription,
}

impl<P: Process> Controller<P> {
    /// A controller of keys of any type, which nothing feeds yet.
    pub fn keyed(manager: &Manager, name: impl Into<String>, process: P) -> Self {
        let name = name.into();
        let queue = Queue::new(manager.handle().clock, Backoff::default(), manager.metrics().queue(&name));
        let metrics = manager.metrics().controller(&name);
        let all_metrics = manager.metrics().clone();
        let (sources, begun) = (Vec::new(), Arc::default());
        Self { name, process, queue, metrics, all_metrics, workers: WORKERS, deadline: DEADLINE, sources, begun }
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
        let queue = self.queue.clone();
        let subscription = informer.subscribe(move |change| {
            let priority = if change.listed { Priority::Low } else { Priority::Normal };
            for key in map(change) {
                queue.add(key, priority);
            }
        });
        let informer = informer.clone();
        self.sources.push(Source { synced: Box::pin(async move { informer.synced().await }), subscription });
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
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut subscriptions = Vec::new();
        for source in self.sources {
            tokio::select! {
                () = source.synced => subscriptions.push(source.subscription),
                () = stop.cancelled() => return,
            }
        }
        tracing::debug!(controller = %self.name, workers = self.workers, "Starting workers");
        self.begun.store(true, Ordering::SeqCst);
        self.metrics.max_workers.set(self.workers as i64);
        let queue = self.queue.clone();
        self.all_metrics.work_in_progress(&self.name, Box::new(move || queue.in_progress()));
        let worker = Arc::new(Worker {
            name: self.name,
            process: self.process,
            queue: self.queue.clone(),
            metrics: self.metrics,
            deadline: self.deadline,
            stop: stop.clone(),
        });
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let worker = worker.clone();
            workers.spawn(async move { worker.run().await });
        }
        stop.cancelled().await;
        self.queue.close();
        while workers.join_next().await.is_some() {}
    }
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
        let owner_type = watch.dyntype().clone();
        let name = R::Resource::kind(&owner_type).to_lowercase();
        let informer = manager.handle().informers.get(watch);
        let process = ByObject { reconcile, informer: informer.clone(), handle: manager.handle(), owner_type };
        Self::keyed(manager, name, process).on(&informer, |change| [change.key()])
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
    pub fn named(mut self, manager: &Manager, name: impl Into<String>) -> Self {
        self.name = name.into();
        self.metrics = manager.metrics().controller(&self.name);
        self.queue.count_as(manager.metrics().queue(&self.name));
        self
    }
}

/// Work on the objects of one kind, by their names.
pub struct ByObject<R: Reconcile> {
    reconcile: R,
    informer: Informer<R::Resource>,
    handle: Handle,
    owner_type: <R::Resource as Resource>::DynamicType,
}

impl<R: Reconcile> Process for ByObject<R> {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, attempt: &Attempt) -> Result<Action, Error> {
        let Some(object) = self.informer.get(key) else {
            self.reconcile.gone(key);
            return Ok(Action::Await);
        };
        let context =
            Context { handle: self.handle.clone(), informer: self.informer.clone(), attempt: attempt.clone() };
        self.reconcile.reconcile(object, &context).await
    }
}

struct Worker<P: Process> {
    name: String,
    process: P,
    queue: Queue<P::Key>,
    metrics: ControllerMetrics,
    deadline: Duration,
    stop: CancellationToken,
}

impl<P: Process> Worker<P> {
    async fn run(&self) {
        while let Some(taken) = self.queue.take().await {
            self.metrics.active_workers.inc();
            let started = tokio::time::Instant::now();
            let verdict = self.work(&taken).await;
            self.metrics.worked(taken.waited, started.elapsed());
            self.metrics.active_workers.dec();
            self.queue.finish(taken, verdict);
        }
    }

    /// One run, whose panic or delay harms nobody else.
    async fn work(&self, taken: &Taken<P::Key>) -> Verdict {
        let attempt = Attempt { failures: taken.failures, stop: self.stop.clone() };
        let run = AssertUnwindSafe(self.process.process(&taken.key, &attempt)).catch_unwind();
        match tokio::time::timeout(self.deadline, run).await {
            Ok(Ok(result)) => self.judge(&taken.key, result),
            Ok(Err(panic)) => {
                self.metrics.panics.inc();
                self.failed(&taken.key, &format!("panic: {}", panic_text(&*panic)))
            }
            Err(_) => {
                self.metrics.timeouts.inc();
                self.failed(&taken.key, &format!("did not finish within {:?}", self.deadline))
            }
        }
    }

    fn judge(&self, key: &P::Key, result: Result<Action, Error>) -> Verdict {
        match result {
            Ok(Action::Await) => {
                self.metrics.success.inc();
                Verdict::Done
            }
            Ok(Action::Recheck(after)) => {
                self.metrics.requeue_after.inc();
                Verdict::After(after)
            }
            Err(Error::Invalid(why)) => {
                self.metrics.terminal_errors.inc();
                self.failed(key, &why);
                Verdict::Done
            }
            Err(Error::Later { after, why }) => {
                self.failed(key, &why);
                Verdict::FailedUntil(after)
            }
            Err(error) if error.is_conflict() => {
                tracing::debug!(controller = %self.name, ?key, %error, "Somebody else was faster");
                self.metrics.error.inc();
                Verdict::Failed
            }
            Err(error) => self.failed(key, &error.to_string()),
        }
    }

    fn failed(&self, key: &P::Key, why: &str) -> Verdict {
        tracing::error!(controller = %self.name, ?key, error = why, "Reconcile failed");
        self.metrics.error.inc();
        self.metrics.errors.inc();
        Verdict::Failed
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

impl<P: Process> Debug for Controller<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).field("workers", &self.workers).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
