//! A controller but for what it does: what feeds its queue, and who works on it. It is built once for each type of key, not
//! once more for every controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::sources::Feeder;
use super::worker::{Work, Worker};
use crate::informer::Subscription;
use crate::journal::Trigger;
use crate::metrics::ControllerMetrics;
use crate::queue::{Key, Priority, Queue};
use crate::reconcile::Handle;
use crate::shards::{Division, Shards};

/// How many keys of one controller are worked on at the same time, unless said otherwise.
const WORKERS: usize = 4;
/// How long one reconcile may take, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(300);

/// A run that goes on for this long after its deadline does not end by itself: the report of a crash has its time in it.
const STUCK_AFTER: Duration = Duration::from_secs(60);

pub(super) struct Workshop<Q> {
    pub(super) name: String,
    pub(super) queue: Queue<Q>,
    metrics: ControllerMetrics,
    handle: Handle,
    pub(super) workers: usize,
    pub(super) deadline: Duration,
    pub(super) lenient: bool,
    pub(super) sources: Vec<Source>,
    pub(super) feeders: Vec<Feeder<Q>>,
    /// Set when all that is watched has been read.
    pub(super) begun: Arc<AtomicBool>,
}

/// A watch that feeds a controller, and the waits for its first list.
pub(super) struct Source {
    pub(super) synced: BoxFuture<'static, ()>,
    pub(super) settled: BoxFuture<'static, ()>,
    pub(super) subscription: Subscription,
}

impl<Q: Key> Workshop<Q> {
    pub(super) fn new(handle: Handle, name: String, queue: Queue<Q>) -> Self {
        let metrics = handle.metrics.controller(&name);
        Self {
            name,
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

    /// Another name for logs and metrics.
    pub(super) fn rename(&mut self, name: &str) {
        self.name = self.handle.name_of(name);
        self.metrics = self.handle.metrics.controller(&self.name);
        self.queue.count_as(self.handle.metrics.queue(&self.name));
    }

    /// Does `work` until `stop`, then lets the runs in progress end.
    pub(super) async fn run(self, work: Arc<dyn Work<Q>>, stop: CancellationToken, division: Option<Arc<Division>>) {
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
            work,
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
        worker.work.ended().await;
    }
}

/// Finds a run that goes on long after it should have been ended: it computes without a pause, and only a new process
/// gets its worker back.
fn stuck<Q: Key>(queue: Queue<Q>, deadline: Duration) -> impl Fn() -> Option<String> + Send + Sync {
    move || {
        let longest = queue.in_progress().into_iter().max()?;
        let is_stuck = longest > deadline.saturating_add(STUCK_AFTER);
        is_stuck.then(|| format!("a run goes on for {}s, and cannot be ended", longest.as_secs()))
    }
}
