//! Time as a value that tests can hold in their hands.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

/// Where the runtime takes the time from.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    System { origin: Instant },
    Manual { start: Timestamp, elapsed: watch::Sender<Duration> },
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Arc::new(Source::System { origin: Instant::now() }))
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Arc::new(Source::Manual { start, elapsed: watch::Sender::new(Duration::ZERO) }))
    }

    /// The wall time.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Manual { start, elapsed } => *start + *elapsed.borrow(),
        }
    }

    /// The time since this clock was made; never goes back.
    pub fn elapsed(&self) -> Duration {
        match &*self.0 {
            Source::System { origin } => origin.elapsed(),
            Source::Manual { elapsed, .. } => *elapsed.borrow(),
        }
    }

    /// Waits until [`Clock::elapsed`] reaches `at`.
    pub async fn sleep_until(&self, at: Duration) {
        match &*self.0 {
            Source::System { origin } => tokio::time::sleep_until(*origin + at).await,
            Source::Manual { elapsed, .. } => {
                let mut elapsed = elapsed.subscribe();
                elapsed.wait_for(|now| *now >= at).await.expect("the clock itself holds the sender");
            }
        }
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.elapsed().saturating_add(duration)).await;
    }

    /// Moves a manual clock forward and wakes whoever waited for that time. The machine's clock is not moved.
    pub fn advance(&self, duration: Duration) {
        if let Source::Manual { elapsed, .. } = &*self.0 {
            elapsed.send_modify(|now| *now += duration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_only_when_it_is_moved() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(Duration::from_secs(60)).await }
        });
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now().as_second(), 60);
    }
}
