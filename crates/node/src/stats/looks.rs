//! Looks at what something uses, and the rate between them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Looks that are kept: enough for the window, and the one before it.
const LOOKS_MAX: usize = 4;
/// Rates are of about this long a time, once there are looks that far apart.
const WINDOW: Duration = Duration::from_secs(15);
/// Looks that are closer together than this tell nothing: the kernel counts in hundredths of a second.
pub(super) const WINDOW_MIN: Duration = Duration::from_millis(100);

/// What was seen at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// Processor time since the beginning.
    pub(super) cpu: Duration,
    pub(super) memory: u64,
}

/// What is used at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) at: Instant,
    pub(super) window: Duration,
    pub(super) nano_cores: u64,
    pub(super) memory: u64,
}

/// The last looks, oldest first.
#[derive(Debug, Default)]
pub(super) struct Looks(VecDeque<Look>);

impl Looks {
    /// Adds a look; the oldest ones go.
    pub(super) fn add(&mut self, look: Look) {
        if self.0.len() == LOOKS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(look);
    }

    /// The rate over the window; `None` before there are two looks.
    pub(super) fn rate(&self) -> Option<Rate> {
        let last = self.0.back()?;
        let in_window = self.0.iter().find(|look| last.at.duration_since(look.at) <= WINDOW + WINDOW_MIN)?;
        let window = last.at.duration_since(in_window.at);
        if window < WINDOW_MIN {
            return None;
        }
        // Processes that nobody waited for take their time with them.
        let used = last.cpu.saturating_sub(in_window.cpu);
        let nano_cores = used.as_nanos().saturating_mul(1_000_000_000) / window.as_nanos();
        let nano_cores = u64::try_from(nano_cores).unwrap_or(u64::MAX);
        Some(Rate { at: last.at, window, nano_cores, memory: last.memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(looks: &[(u64, u64)], expect: Option<(u64, u64)>) {
        let start = Instant::now();
        let mut all = Looks::default();
        for (second, cpu) in looks {
            let at = start + Duration::from_secs(*second);
            all.add(Look { at, cpu: Duration::from_millis(*cpu), memory: *second });
        }
        let rate = all.rate().map(|rate| (rate.window.as_secs(), rate.nano_cores));
        assert_eq!(rate, expect, "{looks:?}");
    }

    #[test]
    fn a_rate_is_of_the_last_seconds() {
        check(&[], None);
        check(&[(0, 100)], None);
        check(&[(0, 100), (5, 1100)], Some((5, 200_000_000)));
        check(&[(0, 0), (5, 5000), (10, 5000), (15, 5000)], Some((15, 333_333_333)));
        check(&[(0, 0), (5, 5000), (10, 5000), (15, 5000), (20, 5000)], Some((15, 0)));
        // A machine that slept.
        check(&[(0, 0), (100, 1000), (105, 2000)], Some((5, 200_000_000)));
        check(&[(0, 0), (100, 1000)], None);
        check(&[(0, 2000), (5, 1000)], Some((5, 0)));
    }
}
