//! The work queue: each key at most once, in order, two priorities, a back-off per key.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::backoff::Backoff;
use crate::metrics::QueueMetrics;
use windlass_clock::Clock;

/// After this many keys of normal priority one of low priority gets its turn, so that none starves.
const NORMAL_PER_LOW: u32 = 8;
/// A change that arrives while a key is backing off runs it early, but not more often than this.
const EARLY_RETRY_MIN: Duration = Duration::from_secs(1);

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
    changed: Notify,
    state: Mutex<State<Q>>,
}

#[derive(Debug)]
struct State<Q> {
    normal: VecDeque<Q>,
    low: VecDeque<Q>,
    /// Keys in line. A key whose priority was raised stands in both lines; only the entry that agrees with this counts.
    waiting: HashMap<Q, Waiting>,
    running: HashMap<Q, Running>,
    delayed: BTreeMap<(Duration, u64), Q>,
    delayed_by_key: HashMap<Q, (Duration, u64)>,
    retries: HashMap<Q, Retry>,
    sequence: u64,
    normal_in_a_row: u32,
    closed: bool,
}

/// A key being worked on.
#[derive(Debug)]
struct Running {
    since: Duration,
    /// The same moment of the machine.
    started: Instant,
    /// The priority of a change that came meanwhile.
    again: Option<Priority>,
}

#[derive(Debug)]
struct Waiting {
    priority: Priority,
    since: Duration,
}

#[derive(Debug)]
struct Retry {
    failures: u32,
    due: Duration,
    not_before: Duration,
}

impl<Q: Key> Queue<Q> {
    /// An empty queue.
    pub fn new(clock: Clock, backoff: Backoff, metrics: QueueMetrics) -> Self {
        let state = State {
            normal: VecDeque::new(),
            low: VecDeque::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_by_key: HashMap::new(),
            retries: HashMap::new(),
            sequence: 0,
            normal_in_a_row: 0,
            closed: false,
        };
        Self(Arc::new(Inner {
            clock,
            backoff,
            metrics: RwLock::new(metrics),
            changed: Notify::new(),
            state: Mutex::new(state),
        }))
    }

    /// Puts `key` in line; if it is there already, or being worked on, it will run once more, not twice.
    pub fn add(&self, key: Q, priority: Priority) {
        let now = self.0.clock.elapsed();
        self.lock().add(key, priority, now);
        self.metrics().adds.inc();
        self.wake();
    }

    /// Puts `key` in line after `delay`, or sooner if it is to come sooner already.
    pub fn add_after(&self, key: Q, delay: Duration) {
        let at = self.0.clock.elapsed().saturating_add(delay);
        self.lock().delay(key, at);
        self.wake();
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

    /// Ends the work on a key.
    pub fn finish(&self, taken: Taken<Q>, verdict: Verdict) {
        let now = self.0.clock.elapsed();
        let retried = self.lock().finish(taken, verdict, now, &self.0.backoff);
        if retried {
            self.metrics().retries.inc();
        }
        self.wake();
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
        self.lock().running.values().map(|running| now.saturating_sub(running.since)).collect()
    }

    fn try_take(&self) -> Next<Q> {
        let now = self.0.clock.elapsed();
        let mut state = self.lock();
        if state.closed {
            return Next::Closed;
        }
        state.promote(now);
        let Some(taken) = state.pop(now) else {
            return Next::NothingBefore(state.delayed.keys().next().map(|(due, _)| *due));
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

enum Next<Q> {
    Closed,
    Key(Taken<Q>),
    NothingBefore(Option<Duration>),
}

impl<Q: Key> State<Q> {
    fn add(&mut self, key: Q, priority: Priority, now: Duration) {
        if let Some(running) = self.running.get_mut(&key) {
            running.again = running.again.max(Some(priority));
            return;
        }
        match self.retries.get(&key) {
            Some(retry) if retry.not_before > now => {
                let at = retry.not_before.min(retry.due);
                self.delay(key, at);
            }
            _ => self.line_up(key, priority, now),
        }
    }

    fn line_up(&mut self, key: Q, priority: Priority, now: Duration) {
        match self.waiting.get_mut(&key) {
            Some(waiting) if waiting.priority >= priority => return,
            Some(waiting) => waiting.priority = priority,
            None => {
                self.waiting.insert(key.clone(), Waiting { priority, since: now });
            }
        }
        match priority {
            Priority::Normal => self.normal.push_back(key),
            Priority::Low => self.low.push_back(key),
        }
    }

    fn delay(&mut self, key: Q, at: Duration) {
        match self.delayed_by_key.get(&key) {
            Some((due, _)) if *due <= at => return,
            Some(slot) => {
                self.delayed.remove(slot);
            }
            None => {}
        }
        self.sequence += 1;
        self.delayed_by_key.insert(key.clone(), (at, self.sequence));
        self.delayed.insert((at, self.sequence), key);
    }

    /// Moves what is due into the line.
    fn promote(&mut self, now: Duration) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let key = entry.remove();
            self.delayed_by_key.remove(&key);
            if let Some(running) = self.running.get_mut(&key) {
                running.again = running.again.max(Some(Priority::Low));
            } else {
                self.line_up(key, Priority::Normal, now);
            }
        }
    }

    fn pop(&mut self, now: Duration) -> Option<Taken<Q>> {
        let (key, waiting) = if self.normal_in_a_row >= NORMAL_PER_LOW {
            self.pop_from(Priority::Low).or_else(|| self.pop_from(Priority::Normal))
        } else {
            self.pop_from(Priority::Normal).or_else(|| self.pop_from(Priority::Low))
        }?;
        self.normal_in_a_row = match waiting.priority {
            Priority::Normal => self.normal_in_a_row.saturating_add(1),
            Priority::Low => 0,
        };
        self.running.insert(key.clone(), Running { since: now, started: Instant::now(), again: None });
        // This run looks at everything, so an earlier wish to look again later is served by it.
        if let Some(slot) = self.delayed_by_key.remove(&key) {
            self.delayed.remove(&slot);
        }
        let retry = self.retries.get(&key);
        Some(Taken {
            failures: retry.map_or(0, |retry| retry.failures),
            counted: retry.is_none_or(|retry| now >= retry.due),
            waited: now.saturating_sub(waiting.since),
            key,
        })
    }

    fn pop_from(&mut self, priority: Priority) -> Option<(Q, Waiting)> {
        loop {
            let line = match priority {
                Priority::Normal => &mut self.normal,
                Priority::Low => &mut self.low,
            };
            let key = line.pop_front()?;
            if self.waiting.get(&key).is_some_and(|waiting| waiting.priority == priority) {
                let waiting = self.waiting.remove(&key)?;
                return Some((key, waiting));
            }
        }
    }

    /// Returns whether the key will be retried.
    fn finish(&mut self, taken: Taken<Q>, verdict: Verdict, now: Duration, backoff: &Backoff) -> bool {
        let running = self.running.remove(&taken.key);
        // A clock can be moved while a key is worked on. What was found to be due after a time was so before the jump.
        let jumped =
            running.as_ref().map(|running| now.saturating_sub(running.since).saturating_sub(running.started.elapsed()));
        let again = running.and_then(|running| running.again);
        let failed = match verdict {
            Verdict::Done | Verdict::After(_) => {
                self.retries.remove(&taken.key);
                if let Verdict::After(delay) = verdict {
                    let due = now.saturating_add(delay).saturating_sub(jumped.unwrap_or_default());
                    self.delay(taken.key.clone(), due.max(now));
                }
                false
            }
            Verdict::Failed | Verdict::FailedUntil(_) => {
                self.failed(&taken, verdict, now, backoff);
                true
            }
        };
        if let Some(priority) = again {
            self.add(taken.key, priority, now);
        }
        failed
    }

    fn failed(&mut self, taken: &Taken<Q>, verdict: Verdict, now: Duration, backoff: &Backoff) {
        let retry = self.retries.entry(taken.key.clone()).or_insert(Retry { failures: 0, due: now, not_before: now });
        if taken.counted {
            retry.failures = retry.failures.saturating_add(1);
            let delay = match verdict {
                Verdict::FailedUntil(delay) => delay,
                _ => backoff.delay(retry.failures),
            };
            retry.due = now.saturating_add(delay);
        }
        retry.not_before = now.saturating_add(EARLY_RETRY_MIN.min(backoff.delay(retry.failures)));
        let due = retry.due.max(now);
        self.delay(taken.key.clone(), due);
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
