//! The lines of a queue, and who is next.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::{Key, Priority, Taken, Verdict};
use crate::backoff::Backoff;
use crate::journal::{TRIGGERS_MAX, Trigger};

/// After this many keys of normal priority one of low priority gets its turn, so that none starves.
pub(super) const NORMAL_PER_LOW: u32 = 8;
/// A change that arrives while a key is backing off runs it early, but not more often than this.
const EARLY_RETRY_MIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct State<Q> {
    normal: VecDeque<Q>,
    low: VecDeque<Q>,
    /// Keys in line. A key whose priority was raised stands in both lines; only the entry that agrees with this counts.
    pub(super) waiting: HashMap<Q, Waiting>,
    pub(super) running: HashMap<Q, Running>,
    delayed: BTreeMap<(Duration, u64), (Q, Priority, Trigger)>,
    delayed_by_key: HashMap<Q, (Duration, u64)>,
    pub(super) retries: HashMap<Q, Retry>,
    /// What woke the keys since they were last taken, and how often more; nothing where nobody asks.
    pub(super) woken: HashMap<Q, Woken>,
    sequence: u64,
    normal_in_a_row: u32,
    pub(super) closed: bool,
}

/// A key being worked on.
#[derive(Debug)]
pub(super) struct Running {
    since: Duration,
    /// The same moment of the machine.
    started: Instant,
    /// The priority of a change that came meanwhile.
    again: Option<Priority>,
}

/// Why a key is in line.
#[derive(Debug, Default)]
pub(super) struct Woken {
    pub(super) by: Vec<Trigger>,
    pub(super) more: u32,
}

#[derive(Debug)]
pub(super) struct Waiting {
    priority: Priority,
    since: Duration,
}

#[derive(Debug)]
pub(super) struct Retry {
    pub(super) failures: u32,
    pub(super) due: Duration,
    not_before: Duration,
}

impl<Q> Default for State<Q> {
    fn default() -> Self {
        Self {
            normal: VecDeque::new(),
            low: VecDeque::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_by_key: HashMap::new(),
            retries: HashMap::new(),
            woken: HashMap::new(),
            sequence: 0,
            normal_in_a_row: 0,
            closed: false,
        }
    }
}

impl<Q: Key> State<Q> {
    pub(super) fn add(&mut self, key: Q, priority: Priority, now: Duration) {
        if let Some(running) = self.running.get_mut(&key) {
            running.again = running.again.max(Some(priority));
            return;
        }
        match self.retries.get(&key) {
            Some(retry) if retry.not_before > now => {
                let at = retry.not_before.min(retry.due);
                self.delay(key, at, priority, Trigger::Retry);
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

    /// Remembers why `key` comes into line; of many reasons the first few are kept.
    pub(super) fn wake(&mut self, key: &Q, trigger: Trigger) {
        let woken = self.woken.entry(key.clone()).or_default();
        if woken.by.contains(&trigger) {
            return;
        }
        if woken.by.len() < TRIGGERS_MAX {
            woken.by.push(trigger);
        } else {
            woken.more = woken.more.saturating_add(1);
        }
    }

    /// When `key` comes into line by itself.
    pub(super) fn due(&self, key: &Q) -> Option<Duration> {
        self.delayed_by_key.get(key).map(|(due, _)| *due)
    }

    pub(super) fn delay(&mut self, key: Q, at: Duration, priority: Priority, why: Trigger) {
        match self.delayed_by_key.get(&key) {
            Some((due, _)) if *due <= at => return,
            Some(slot) => {
                self.delayed.remove(slot);
            }
            None => {}
        }
        self.sequence += 1;
        self.delayed_by_key.insert(key.clone(), (at, self.sequence));
        self.delayed.insert((at, self.sequence), (key, priority, why));
    }

    /// When the next key that waits for its time is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.delayed.keys().next().map(|(due, _)| *due)
    }

    /// For how long each key has been worked on.
    pub(super) fn running_for(&self, now: Duration) -> Vec<Duration> {
        self.running.values().map(|running| now.saturating_sub(running.since)).collect()
    }

    /// Moves what is due into the line.
    pub(super) fn promote(&mut self, now: Duration) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let (key, priority, why) = entry.remove();
            self.delayed_by_key.remove(&key);
            self.wake(&key, why);
            if let Some(running) = self.running.get_mut(&key) {
                running.again = running.again.max(Some(Priority::Low));
            } else {
                self.line_up(key, priority, now);
            }
        }
    }

    pub(super) fn pop(&mut self, now: Duration) -> Option<Taken<Q>> {
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
        let woken = self.woken.remove(&key).unwrap_or_default();
        Some(Taken {
            failures: retry.map_or(0, |retry| retry.failures),
            counted: retry.is_none_or(|retry| now >= retry.due),
            waited: now.saturating_sub(waiting.since),
            triggers: woken.by,
            more_triggers: woken.more,
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
    pub(super) fn finish(&mut self, taken: Taken<Q>, verdict: Verdict, now: Duration, backoff: &Backoff) -> bool {
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
                    self.delay(taken.key.clone(), due.max(now), Priority::Normal, Trigger::Recheck);
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
        self.delay(taken.key.clone(), due, Priority::Normal, Trigger::Retry);
    }
}
