//! Watchers: each has a queue of its own with a limit, and learns when it fell behind.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::sync::mpsc;

use crate::{Event, Revision, WatchError, store::State};

/// How many events wait for a watcher before it is told that it fell behind.
pub(crate) const QUEUE_MAX: usize = 8_192;

/// The store's end of a watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    prefix: String,
    after: Revision,
    queue: mpsc::Sender<Arc<Event>>,
    lagged: Arc<AtomicBool>,
}

impl Watcher {
    /// Passes `event` on if it concerns this watcher; `false` if the watch is over.
    pub(crate) fn publish(&self, event: &Arc<Event>) -> bool {
        if event.revision <= self.after || !event.key.starts_with(&self.prefix) {
            return !self.queue.is_closed();
        }
        match self.queue.try_send(Arc::clone(event)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.lagged.store(true, Ordering::Release);
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

/// The changes of the keys under a prefix, in the order of their commits, without gaps.
#[derive(Debug)]
pub struct Watch {
    backlog: VecDeque<Arc<Event>>,
    queue: mpsc::Receiver<Arc<Event>>,
    lagged: Arc<AtomicBool>,
    state: Arc<Mutex<State>>,
}

impl Watch {
    /// A watch that begins with `backlog`, and the end that the store keeps.
    pub(crate) fn new(
        state: &Arc<Mutex<State>>,
        prefix: &str,
        after: Revision,
        backlog: VecDeque<Arc<Event>>,
    ) -> (Self, Watcher) {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let lagged = Arc::new(AtomicBool::new(false));
        let watcher = Watcher { prefix: prefix.to_owned(), after, queue: sender, lagged: Arc::clone(&lagged) };
        (Self { backlog, queue, lagged, state: Arc::clone(state) }, watcher)
    }

    /// The next change; an error is the last answer.
    ///
    /// Dropping the future before it is done loses nothing.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// As [`Watch::next`], for streams.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Arc<Event>, WatchError>> {
        if let Some(event) = self.backlog.pop_front() {
            return Poll::Ready(Ok(event));
        }
        self.queue.poll_recv(context).map(|event| event.ok_or_else(|| self.ending()))
    }

    /// The next change, if one is there already.
    pub fn try_next(&mut self) -> Option<Result<Arc<Event>, WatchError>> {
        if let Some(event) = self.backlog.pop_front() {
            return Some(Ok(event));
        }
        match self.queue.try_recv() {
            Ok(event) => Some(Ok(event)),
            Err(mpsc::error::TryRecvError::Empty) => None,
            Err(mpsc::error::TryRecvError::Disconnected) => Some(Err(self.ending())),
        }
    }

    /// The revision up to which every change was taken; `None` while some wait.
    pub fn progress(&self) -> Option<Revision> {
        // The lock keeps a commit from being published between the two looks.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.backlog.is_empty() && self.queue.is_empty()).then(|| state.current.revision())
    }

    /// The revision of the store, whatever of it was taken.
    #[cfg(test)]
    pub(crate) fn store_revision(&self) -> Option<Revision> {
        Some(self.state.lock().unwrap_or_else(PoisonError::into_inner).current.revision())
    }

    fn ending(&self) -> WatchError {
        if self.lagged.load(Ordering::Acquire) { WatchError::Lagged } else { WatchError::Closed }
    }
}
