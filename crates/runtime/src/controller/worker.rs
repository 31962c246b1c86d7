//! Workers: they take keys, and a run that panics or hangs harms nobody else.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::run::Recorded;
use crate::journal::{self, Next, Subject, Turn};
use crate::metrics::ControllerMetrics;
use crate::queue::{Key, Queue, Taken, Verdict};
use crate::reconcile::{Action, Attempt, Crash, Error, Handle, Process};
use crate::shards::{self, Shards};

/// How long the report of a crash may take.
pub(super) const CRASH_REPORT_MAX: Duration = Duration::from_secs(10);

/// What is done with a key: a [`Process`] of any type.
pub(super) trait Work<Q>: Send + Sync {
    /// On the heap: it holds whole objects, and every layer above would have it on the stack once more.
    fn process<'a>(&'a self, key: &'a Q, attempt: &'a Attempt) -> BoxFuture<'a, Result<Action, Error>>;
    fn crashed<'a>(&'a self, key: &'a Q, crash: &'a Crash, attempt: &'a Attempt) -> BoxFuture<'a, ()>;
    fn subject(&self, key: &Q) -> Option<Subject>;
    fn exists(&self, key: &Q) -> bool;
    fn ended(&self) -> BoxFuture<'_, ()>;
}

impl<P: Process> Work<P::Key> for P {
    fn process<'a>(&'a self, key: &'a P::Key, attempt: &'a Attempt) -> BoxFuture<'a, Result<Action, Error>> {
        Box::pin(Process::process(self, key, attempt))
    }

    fn crashed<'a>(&'a self, key: &'a P::Key, crash: &'a Crash, attempt: &'a Attempt) -> BoxFuture<'a, ()> {
        Box::pin(Process::crashed(self, key, crash, attempt))
    }

    fn subject(&self, key: &P::Key) -> Option<Subject> {
        Process::subject(self, key)
    }

    fn exists(&self, key: &P::Key) -> bool {
        Process::exists(self, key)
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(Process::ended(self))
    }
}

pub(super) struct Worker<Q> {
    pub(super) name: String,
    pub(super) work: Arc<dyn Work<Q>>,
    pub(super) queue: Queue<Q>,
    pub(super) metrics: ControllerMetrics,
    pub(super) deadline: Duration,
    pub(super) handle: Handle,
    pub(super) stop: CancellationToken,
    /// Which keys this replica works on, if there are several replicas.
    pub(super) shards: Option<Arc<Shards<Q>>>,
}

impl<Q: Key> Worker<Q> {
    pub(super) async fn run(&self) {
        while let Some(taken) = self.queue.take().await {
            let Some(shards) = &self.shards else {
                self.run_one(taken).await;
                continue;
            };
            // A key of another replica is left to it; if its shard comes here, so does the key.
            match shards.enter(&taken.key, self.work.exists(&taken.key)) {
                Some(pass) => shards::within(pass, self.run_one(taken)).await,
                None => drop(self.queue.finish(taken, Verdict::Done)),
            }
        }
    }

    async fn run_one(&self, mut taken: Taken<Q>) {
        self.metrics.active_workers.inc();
        let started = tokio::time::Instant::now();
        let recorded = Recorded::begin(&self.handle, &self.name, self.work.subject(&taken.key), &mut taken);
        let span = recorded.span(&self.name, &taken.key);
        let verdict = recorded.within(self.work(&taken)).instrument(span).await;
        let took = started.elapsed();
        self.metrics.worked(taken.waited, took);
        self.metrics.active_workers.dec();
        let is_retry = matches!(verdict, Verdict::Failed | Verdict::FailedUntil(_));
        let failures = if is_retry { taken.failures.saturating_add(1) } else { 0 };
        let due = self.queue.finish(taken, verdict);
        let next = due.map(|due| Next { at: self.handle.clock.now() + due, retry: is_retry });
        recorded.end(journal::Ended { took, failures, next });
    }

    /// One run, whose panic or delay harms nobody else.
    async fn work(&self, taken: &Taken<Q>) -> Verdict {
        let attempt = Attempt { failures: taken.failures, stop: self.stop.clone() };
        let run = AssertUnwindSafe(self.work.process(&taken.key, &attempt)).catch_unwind();
        let crash = match tokio::time::timeout(self.deadline, run).await {
            Ok(Ok(result)) => return self.judge(result),
            Ok(Err(panic)) => {
                self.metrics.panics.inc();
                Crash::Panic(panic_text(&*panic).to_owned())
            }
            Err(_) => {
                self.metrics.timeouts.inc();
                Crash::Deadline(self.deadline)
            }
        };
        journal::decided(Turn::Crashed, crash.reason(), &crash.to_string());
        let report = AssertUnwindSafe(self.work.crashed(&taken.key, &crash, &attempt)).catch_unwind();
        if !matches!(tokio::time::timeout(CRASH_REPORT_MAX, report).await, Ok(Ok(()))) {
            tracing::warn!("Cannot report a crash");
        }
        self.failed(&crash.to_string())
    }

    fn judge(&self, result: Result<Action, Error>) -> Verdict {
        match result {
            Ok(Action::Await) => {
                journal::concluded(Turn::Done, "", "");
                self.metrics.success.inc();
                Verdict::Done
            }
            Ok(Action::Recheck(after)) => {
                journal::concluded(Turn::Done, "", "");
                self.metrics.requeue_after.inc();
                Verdict::After(after)
            }
            Err(Error::Invalid(why)) => {
                journal::concluded(Turn::Invalid, "Invalid", &why);
                self.metrics.terminal_errors.inc();
                self.failed(&why);
                Verdict::Done
            }
            Err(Error::Later { after, why }) => {
                journal::concluded(Turn::Failed, "Retrying", &why);
                self.failed(&why);
                Verdict::FailedUntil(after)
            }
            Err(error) if error.is_conflict() => {
                journal::decided(Turn::Conflict, "Conflict", &journal::of_error(&error));
                tracing::debug!(%error, "Somebody else was faster");
                self.metrics.error.inc();
                Verdict::Failed
            }
            Err(error) => {
                // What an operator decided is not done if the run fails after it, as with a status that cannot be written.
                if !journal::is_failure_told() {
                    journal::decided(Turn::Failed, "Failed", &journal::of_error(&error));
                }
                self.failed(&error.to_string())
            }
        }
    }

    fn failed(&self, why: &str) -> Verdict {
        tracing::error!(error = why, "Reconcile failed");
        self.metrics.error.inc();
        self.metrics.errors.inc();
        Verdict::Failed
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
