//! The work queue: each key at most once, in order, two priorities, a back-off per key.

mod state;

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::Notify;

use self::state::State;
use crate::backoff::Backoff;
use crate::cache::Change;
use crate::informer::{Informer, Subscription};
use crate::journal::{Happened, Trigger};
use crate::metrics::QueueMetrics;
use crate::object::Object;
use windlass_clock::Clock;

/// What a queue can hold.
pub trait Key: Clone + Debug + Eq + Hash + Send + Sync + 'static {}
impl<T: Clone + Debug + Eq + Hash + Send + Sync + 'static> Key for T {}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Objects of the first list and periodic checks.
    Low,
    /// Something changed.
    Normal,
}

/// A key that a worker took; give it back with [`Queue::finish`].
#[derive(Debug)]
pub struct Taken<Q> {
    /// The key to work on.
    pub key: Q,
    /// How many attempts in a row failed before this one.
    pub failures: u32,
    /// How long the key stood in line.
    pub waited: Duration,
    /// What put the key into line, as far as it is named.
    pub triggers: Vec<Trigger>,
    /// How many more there were.
    pub more_triggers: u32,
    /// Whether a failure of this attempt counts: an attempt made early because of a change does not.
    counted: bool,
}

/// How the work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done: failures are forgotten.
    Done,
    /// Done, and to be looked at again.
    After(Duration),
    /// Failed: to be tried again, later each time.
    Failed,
    /// Failed: to be tried again at a time of its own choice; the attempt counts.
    FailedUntil(Duration),
}

/// A queue of keys; clones are the same queue.
#[derive(Debug)]
pub struct Queue<Q>(Arc<Inner<Q>>);

impl<Q> Clone for Queue<Q> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<Q> {
    clock: Clock,
    backoff: Backoff,
    metrics: RwLock<QueueMetrics>,
    /// Whether somebody wants to know why keys are in line.
    is_asked_why: bool,
    changed: Notify,
    state: Mutex<State<Q>>,
}

impl<Q: Key> Queue<Q> {
    /// An empty queue.
    pub fn new(clock: Clock, backoff: Backoff, metrics: QueueMetrics) -> Self {
        Self::build(clock, backoff, metrics, true)
    }

    /// An empty queue; unless `is_asked_why`, it does not remember why keys are in line.
    pub(crate) fn build(clock: Clock, backoff: Backoff, metrics: QueueMetrics, is_asked_why: bool) -> Self {
        Self(Arc::new(Inner {
            clock,
            backoff,
            metrics: RwLock::new(metrics),
            is_asked_why,
            changed: Notify::new(),
            state: Mutex::default(),
        }))
    }

    /// Puts `key` in line; if it is there already, or being worked on, it will run once more, not twice.
    pub fn add(&self, key: Q, priority: Priority) {
        self.add_for(key, priority, || Trigger::Asked);
    }

    /// As [`Queue::add`], and says why.
    pub fn add_for(&self, key: Q, priority: Priority, why: impl FnOnce() -> Trigger) {
        let now = self.0.clock.elapsed();
        let mut state = self.lock();
        if self.0.is_asked_why {
            state.wake(&key, why());
        }
        state.add(key, priority, now);
        drop(state);
        self.metrics().adds.inc();
        self.wake();
    }

    /// Puts `key` in line after `delay`, or sooner if it is to come sooner already.
    pub fn add_after(&self, key: Q, delay: Duration) {
        let at = self.0.clock.elapsed().saturating_add(delay);
        self.lock().delay(key, at, Priority::Normal, Trigger::Asked);
        self.wake();
    }

    /// As [`Queue::add_after`], for a look that can wait for whatever else there is.
    pub fn resync(&self, key: Q, delay: Duration) {
        let at = self.0.clock.elapsed().saturating_add(delay);
        self.lock().delay(key, at, Priority::Low, Trigger::Resync);
        self.wake();
    }

    /// Puts the keys that `map` finds for a change into line, for as long as the subscription is held: what is there
    /// already first, behind everything else.
    pub fn follow<K: Object, I: IntoIterator<Item = Q>>(
        &self,
        informer: &Informer<K>,
        map: impl Fn(&Change<K>) -> I + Send + Sync + 'static,
    ) -> Subscription {
        let (queue, kind) = (self.clone(), informer.kind());
        informer.subscribe(move |change| {
            let priority = if change.listed { Priority::Low } else { Priority::Normal };
            for key in map(change) {
                queue.add_for(key, priority, || news(change, &kind));
            }
        })
    }

    /// Waits for the next key; `None` once the queue is closed.
    pub async fn take(&self) -> Option<Taken<Q>> {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let next_due = match self.try_take() {
                Next::Closed => return None,
                Next::Key(taken) => return Some(taken),
                Next::NothingBefore(due) => due,
            };
            match next_due {
                Some(due) => tokio::select! {
                    () = changed => {}
                    () = self.0.clock.sleep_until(due) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Ends the work on a key, and tells after what time it comes into line again by itself.
    pub fn finish(&self, taken: Taken<Q>, verdict: Verdict) -> Option<Duration> {
        let (now, key) = (self.0.clock.elapsed(), taken.key.clone());
        let mut state = self.lock();
        let retried = state.finish(taken, verdict, now, &self.0.backoff);
        let due = state.due(&key).map(|due| due.saturating_sub(now));
        drop(state);
        if retried {
            self.metrics().retries.inc();
        }
        self.wake();
        due
    }

    /// Lets the takers go; what is in line stays undone.
    pub fn close(&self) {
        self.lock().closed = true;
        self.0.changed.notify_waiters();
    }

    /// How many keys stand in line, those that wait for their time not counted.
    pub fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Whether no key stands in line.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nothing stands in line and nothing is being worked on.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && state.running.is_empty()
    }

    /// For how long each key that is at work has been so.
    pub fn in_progress(&self) -> Vec<Duration> {
        let now = self.0.clock.elapsed();
        self.lock().running_for(now)
    }

    fn try_take(&self) -> Next<Q> {
        let now = self.0.clock.elapsed();
        let mut state = self.lock();
        if state.closed {
            return Next::Closed;
        }
        state.promote(now);
        let Some(taken) = state.pop(now) else {
            return Next::NothingBefore(state.next_due());
        };
        self.metrics().depth.set(state.waiting.len() as i64);
        if !state.waiting.is_empty() {
            self.0.changed.notify_one();
        }
        Next::Key(taken)
    }

    fn wake(&self) {
        self.metrics().depth.set(self.len() as i64);
        self.0.changed.notify_one();
    }

    /// Counts under another name from now on.
    pub(crate) fn count_as(&self, metrics: QueueMetrics) {
        *self.0.metrics.write().expect("no code that can panic runs under this lock") = metrics;
    }

    fn metrics(&self) -> RwLockReadGuard<'_, QueueMetrics> {
        self.0.metrics.read().expect("no code that can panic runs under this lock")
    }

    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.0.state.lock().expect("no code that can panic runs under this lock")
    }
}

/// A change of a watched object, as a reason to look at another.
fn news<K: Object>(change: &Change<K>, kind: &str) -> Trigger {
    let happened = match (&change.old, &change.new) {
        _ if change.listed => Happened::Listed,
        (_, None) => Happened::Deleted,
        (None, Some(_)) => Happened::Added,
        (Some(_), Some(_)) => Happened::Changed,
    };
    let meta = change.object().meta();
    Trigger::Object {
        happened,
        kind: kind.to_owned(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone().unwrap_or_default(),
        version: meta.resource_version.clone().unwrap_or_default(),
    }
}

enum Next<Q> {
    Closed,
    Key(Taken<Q>),
    NothingBefore(Option<Duration>),
}

#[cfg(test)]
mod tests;
