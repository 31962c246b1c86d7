//! The time of a test.

use std::time::Duration;

use jiff::Timestamp;
use windlass_clock::Clock;

/// The time that an API server, its controllers and the code under test obey; a clone is the same clock.
///
/// A clock that *runs* goes on by itself, so that short pauses such as the back-off after a conflict pass as they do in
/// life, and can be moved over the hours that a test does not want to wait. A *frozen* clock shows the same time until
/// it is moved: nothing that waits for time happens before that, back-off included.
///
/// ```
/// use std::time::Duration;
/// use windlass_testkit::TestClock;
///
/// let clock = TestClock::frozen("2026-01-01T00:00:00Z");
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now().to_string(), "2026-01-01T01:00:00Z");
/// ```
#[derive(Clone, Debug)]
pub struct TestClock(Clock);

impl Default for TestClock {
    /// A clock that runs and shows the present.
    fn default() -> Self {
        Self(Clock::running(Timestamp::now()))
    }
}

impl TestClock {
    /// A clock that shows `start` now and runs.
    ///
    /// # Panics
    /// If `start` is not a time in RFC 3339.
    pub fn running_from(start: &str) -> Self {
        Self(Clock::running(time(start)))
    }

    /// A clock that shows `start` until it is moved.
    ///
    /// # Panics
    /// If `start` is not a time in RFC 3339.
    pub fn frozen(start: &str) -> Self {
        Self(Clock::manual(time(start)))
    }

    /// The time that it shows.
    pub fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// Moves it forward; whoever waited for a moment in between is woken.
    pub fn advance(&self, duration: Duration) {
        self.0.advance(duration);
    }

    /// The clock as the runtime of operators takes it.
    pub fn clock(&self) -> Clock {
        self.0.clone()
    }
}

fn time(text: &str) -> Timestamp {
    match text.parse() {
        Ok(time) => time,
        Err(error) => panic!("{text:?} is not a time: {error}"),
    }
}
