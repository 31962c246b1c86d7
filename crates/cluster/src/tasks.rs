//! The parts of a cluster that run, and the news when one of them ends by itself.

use std::fmt;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// More failures than this are not kept; the first is what counts.
const FAILURES_MAX: usize = 16;

/// A part of the cluster that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {part} stopped: {reason}")]
pub struct Failure {
    /// The part.
    pub part: &'static str,
    /// Why it ended.
    pub reason: String,
}

/// Parts that are stopped together.
#[derive(Debug)]
pub(crate) struct Group {
    stop: CancellationToken,
    tasks: TaskTracker,
    failures: mpsc::Sender<Failure>,
}

/// Where failures arrive.
pub(crate) type Failures = mpsc::Receiver<Failure>;

pub(crate) fn failures() -> (mpsc::Sender<Failure>, Failures) {
    mpsc::channel(FAILURES_MAX)
}

impl Group {
    pub(crate) fn new(failures: mpsc::Sender<Failure>) -> Self {
        Group { stop: CancellationToken::new(), tasks: TaskTracker::new(), failures }
    }

    /// Tells the parts to stop when cancelled.
    pub(crate) fn token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Runs `part`; should it end before it was told to, that is a failure.
    pub(crate) fn spawn<E: fmt::Display>(
        &self,
        part: &'static str,
        work: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let (stop, failures) = (self.stop.clone(), self.failures.clone());
        self.tasks.spawn(async move {
            let outcome = work.await.map_err(|error| error.to_string());
            if stop.is_cancelled() {
                return;
            }
            let reason = outcome.err().unwrap_or_else(|| "it had nothing left to do".to_owned());
            tracing::error!(part, reason, "a part of the cluster stopped");
            // A full queue means that others failed before, and one is enough.
            let _ = failures.try_send(Failure { part, reason });
        });
    }

    /// Stops the parts and waits until they are done.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
