//! What an autoscaler remembers: what was recommended, and what was done.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// How many recommendations are remembered: those of the longest window there can be, an hour, and some more.
const RECOMMENDATIONS_MAX: usize = 512;
/// How many changes are remembered: those of the longest period there can be, half an hour, and some more.
const CHANGES_MAX: usize = 256;
/// The longest window that an autoscaler can have, and the longest period.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(1);
const PERIOD_MAX: SignedDuration = SignedDuration::from_mins(30);

/// What one autoscaler remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What the metrics asked for.
    recommendations: VecDeque<(Timestamp, i32)>,
    /// By how many replicas the target was changed; more are positive.
    changes: VecDeque<(Timestamp, i32)>,
}

impl Memory {
    /// Takes what the target has for the first recommendation, unless there is one.
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommend(replicas, now);
        }
    }

    /// Remembers what the metrics ask for.
    pub(super) fn recommend(&mut self, replicas: i32, now: Timestamp) {
        keep(&mut self.recommendations, (now, replicas), WINDOW_MAX, RECOMMENDATIONS_MAX);
    }

    /// Remembers that the target was changed.
    pub(super) fn change(&mut self, by: i32, now: Timestamp) {
        keep(&mut self.changes, (now, by), PERIOD_MAX, CHANGES_MAX);
    }

    /// What was recommended within the window before `now`.
    pub(super) fn recommended(&self, seconds: i32, now: Timestamp) -> impl Iterator<Item = i32> {
        within(&self.recommendations, seconds, now)
    }

    /// By how many replicas the target grew, in sum, within the period before `now`.
    pub(super) fn growth(&self, seconds: i32, now: Timestamp) -> i32 {
        within(&self.changes, seconds, now).fold(0, i32::saturating_add)
    }
}

fn keep(all: &mut VecDeque<(Timestamp, i32)>, new: (Timestamp, i32), age_max: SignedDuration, count_max: usize) {
    all.retain(|(when, _)| new.0.duration_since(*when) <= age_max);
    if all.len() == count_max {
        all.pop_front();
    }
    all.push_back(new);
}

fn within(all: &VecDeque<(Timestamp, i32)>, seconds: i32, now: Timestamp) -> impl Iterator<Item = i32> {
    let length = SignedDuration::from_secs(i64::from(seconds));
    all.iter().filter(move |(when, _)| now.duration_since(*when) < length).map(|(_, value)| *value)
}
