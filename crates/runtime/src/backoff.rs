//! How long to wait before the next attempt.

use std::time::Duration;

use windlass_clock::Clock;

/// Exponential growth from `base` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Default for Backoff {
    /// 5 ms to 1000 s, what controllers of the field use per object.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    /// For watches: kinder to a server in trouble than the one per object.
    pub const WATCH: Self = Self { base: Duration::from_millis(250), max: Duration::from_secs(30) };

    /// For watches of a kind that is not there: its definition is often applied a moment later.
    pub const MISSING_KIND: Self = Self { base: Duration::from_millis(250), max: Duration::from_secs(4) };

    /// The delay after `failures` failures in a row (one or more).
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 2_u32.checked_pow(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }

    /// As [`Backoff::delay`], spread over the upper half so that many waiters do not come back together.
    pub fn jittered(&self, failures: u32, clock: &Clock) -> Duration {
        let delay = self.delay(failures);
        delay.mul_f64(clock.spread(0.5..1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_to_its_limit_and_stays() {
        let backoff = Backoff::default();
        let rows = [(1, 5), (2, 10), (3, 20), (11, 5120), (18, 655_360), (19, 1_000_000), (500, 1_000_000)];
        for (failures, expected_ms) in rows {
            assert_eq!(backoff.delay(failures).as_millis(), expected_ms, "after {failures} failures");
        }
    }

    #[test]
    fn jitter_stays_in_the_upper_half() {
        let clock = Clock::system();
        for failures in 1..30 {
            let (delay, jittered) = (Backoff::WATCH.delay(failures), Backoff::WATCH.jittered(failures, &clock));
            assert!(jittered >= delay / 2 && jittered <= delay, "{jittered:?} of {delay:?}");
        }
    }
}
