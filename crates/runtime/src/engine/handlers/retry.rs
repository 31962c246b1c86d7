//! How often and how long a handler that fails is tried again.

use std::time::Duration;

use jiff::Timestamp;

/// The shortest pause before another attempt, whatever a handler asks for: an attempt costs two writes.
pub(super) const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause that can be asked for.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// When a handler that fails is tried again, and when it gives up.
///
/// Without more said: after 1 s, 2 s, 4 s … 10 minutes, for ever, each attempt for at most 5 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    first: Duration,
    longest: Duration,
    attempts: Option<u32>,
    within: Option<Duration>,
    deadline: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: PAUSE_MIN,
            longest: Duration::from_secs(600),
            attempts: None,
            within: None,
            deadline: Duration::from_secs(300),
        }
    }
}

impl Retry {
    /// As without more said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The pause after the first failure; each later one is twice as long. At least a second.
    #[must_use]
    pub fn first(self, first: Duration) -> Self {
        Self { first: first.max(PAUSE_MIN), ..self }
    }

    /// The longest pause.
    #[must_use]
    pub fn longest(self, longest: Duration) -> Self {
        Self { longest: longest.clamp(PAUSE_MIN, PAUSE_MAX), ..self }
    }

    /// Gives up after this many attempts, until the next change.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: Some(attempts.max(1)), ..self }
    }

    /// Gives up when this time has passed since the first attempt, until the next change.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// How long one attempt may take; one that takes longer is dropped and has failed.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline: deadline.max(PAUSE_MIN), ..self }
    }

    pub(super) fn attempt_max(&self) -> Duration {
        self.deadline
    }

    /// The pause after so many failures in a row, or the one that the handler asked for.
    pub(super) fn pause(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
        asked.unwrap_or_else(|| doubled.min(self.longest)).clamp(PAUSE_MIN, PAUSE_MAX)
    }

    /// Whether no attempt may begin at `at`, after so many since `since`.
    pub(super) fn is_over(&self, attempts: u32, since: Timestamp, at: Timestamp) -> bool {
        let too_many = self.attempts.is_some_and(|max| attempts >= max);
        let too_late =
            self.within.is_some_and(|within| at.duration_since(since).unsigned_abs() >= within && at >= since);
        too_many || (attempts > 0 && too_late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_up_to_the_longest_unless_one_is_asked_for() {
        let retry = Retry::new().first(seconds(3)).longest(seconds(20));
        let pauses: Vec<_> = (1..=6).map(|failures| retry.pause(failures, None).as_secs()).collect();
        assert_eq!(pauses, [3, 6, 12, 20, 20, 20]);
        assert_eq!(retry.pause(1, Some(seconds(99))), seconds(99));
        assert_eq!(retry.pause(1, Some(Duration::ZERO)), PAUSE_MIN);
        assert_eq!(retry.pause(u32::MAX, None), seconds(20));
        assert_eq!(retry.pause(1, Some(Duration::MAX)), PAUSE_MAX);
    }

    #[test]
    fn attempts_and_time_run_out() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rows = [
            (Retry::new(), 1000, 1_000_000, false),
            (Retry::new().attempts(3), 2, 0, false),
            (Retry::new().attempts(3), 3, 0, true),
            (Retry::new().within(seconds(60)), 9, 59, false),
            (Retry::new().within(seconds(60)), 1, 60, true),
            (Retry::new().within(seconds(60)), 0, 60, false),
        ];
        for (retry, attempts, now, over) in rows {
            assert_eq!(retry.is_over(attempts, at(0), at(now)), over, "{retry:?} {attempts} {now}");
        }
    }
}
