//! Time as a value that tests can hold in their hands.
//!
//! Everything that reads the time or waits for it does so through a [`Clock`]. There are three: the machine's own; one
//! that stands still until it is moved; and one that runs with the machine's and can be moved ahead of it.
//! Chance comes from the same place: a clock that was given a seed makes the same choices again.
//!
//! ```
//! use std::time::Duration;
//! use windlass_clock::Clock;
//!
//! let clock = Clock::manual("2026-01-01T00:00:00Z".parse()?);
//! clock.advance(Duration::from_secs(90));
//! assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
//! # Ok::<_, jiff::Error>(())
//! ```

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::time::Instant;

/// Where a program takes the time from; a clone is the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a clock is made once and shared")]
enum Source {
    System { origin: Instant },
    Movable(Movable),
}

/// A clock that tests move.
#[derive(Debug)]
struct Movable {
    start: Timestamp,
    /// Since when it runs by itself; `None` if it only moves when told to.
    running_since: Option<Instant>,
    /// How far it was moved.
    moved: watch::Sender<Duration>,
    /// How far its hands were put back.
    back: Mutex<Duration>,
    /// What its choices follow from, if that was said.
    chance: Mutex<Option<StdRng>>,
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
        Self::movable(start, None)
    }

    /// A clock that shows `start` now, runs like the machine's and can be moved ahead by [`Clock::advance`].
    pub fn running(start: Timestamp) -> Self {
        Self::movable(start, Some(Instant::now()))
    }

    fn movable(start: Timestamp, running_since: Option<Instant>) -> Self {
        let (moved, back, chance) = (watch::Sender::new(Duration::ZERO), Mutex::default(), Mutex::default());
        Self(Arc::new(Source::Movable(Movable { start, running_since, moved, back, chance })))
    }

    /// From now on, chance follows from `seed`. On the machine's clock it stays chance.
    pub fn seed(&self, seed: u64) {
        if let Source::Movable(movable) = &*self.0 {
            *movable.chance.lock().unwrap_or_else(PoisonError::into_inner) = Some(StdRng::seed_from_u64(seed));
        }
    }

    /// A number by chance.
    pub fn random(&self) -> u64 {
        let Source::Movable(movable) = &*self.0 else { return rand::random() };
        let mut chance = movable.chance.lock().unwrap_or_else(PoisonError::into_inner);
        chance.as_mut().map_or_else(rand::random, Rng::random)
    }

    /// A number of `range` by chance, so that many who wait do not all come at once.
    pub fn spread(&self, range: Range<f64>) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "so many digits are of no use")]
        let fraction = (self.random() >> 11) as f64 / (1_u64 << 53) as f64;
        range.start + (range.end - range.start) * fraction
    }

    /// The wall time.
    pub fn now(&self) -> Timestamp {
        match &*self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Movable(movable) => {
                let back = *movable.back.lock().unwrap_or_else(PoisonError::into_inner);
                movable.start + movable.elapsed() - back
            }
        }
    }

    /// The time since this clock was made; never goes back.
    pub fn elapsed(&self) -> Duration {
        match &*self.0 {
            Source::System { origin } => origin.elapsed(),
            Source::Movable(movable) => movable.elapsed(),
        }
    }

    /// Waits until [`Clock::elapsed`] reaches `at`.
    pub async fn sleep_until(&self, at: Duration) {
        match &*self.0 {
            Source::System { origin } => tokio::time::sleep_until(*origin + at).await,
            Source::Movable(movable) => movable.sleep_until(at).await,
        }
    }

    /// Waits for `duration`.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.elapsed().saturating_add(duration)).await;
    }

    /// Moves the clock forward and wakes whoever waited for that time. The machine's clock is not moved.
    pub fn advance(&self, duration: Duration) {
        if let Source::Movable(movable) = &*self.0 {
            movable.moved.send_modify(|moved| *moved += duration);
        }
    }

    /// Puts the hands back, as somebody does who finds the clock fast: [`Clock::now`] shows an earlier time, and whoever
    /// waits waits as before. The machine's clock is not moved.
    pub fn turn_back(&self, duration: Duration) {
        if let Source::Movable(movable) = &*self.0 {
            *movable.back.lock().unwrap_or_else(PoisonError::into_inner) += duration;
        }
    }
}

impl Movable {
    fn elapsed(&self) -> Duration {
        self.elapsed_when_moved(*self.moved.borrow())
    }

    fn elapsed_when_moved(&self, moved: Duration) -> Duration {
        moved + self.running_since.map(|since| since.elapsed()).unwrap_or_default()
    }

    async fn sleep_until(&self, at: Duration) {
        let mut moved = self.moved.subscribe();
        loop {
            let left = at.saturating_sub(self.elapsed_when_moved(*moved.borrow_and_update()));
            if left.is_zero() {
                return;
            }
            let run = async {
                match self.running_since {
                    Some(_) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = run => {}
                change = moved.changed() => change.expect("the clock itself holds the sender"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_only_when_it_is_moved() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(MINUTE).await }
        });
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.now().as_second(), 60);
    }

    #[test]
    fn a_clock_that_is_put_back_shows_an_earlier_time_and_waits_as_before() {
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        clock.advance(MINUTE);
        clock.turn_back(2 * MINUTE);
        assert_eq!((clock.now().to_string().as_str(), clock.elapsed()), ("2025-12-31T23:59:00Z", MINUTE));
    }

    #[test]
    fn a_clock_with_a_seed_makes_the_same_choices_again() {
        let choices = |seed: u64| {
            let clock = Clock::manual(Timestamp::UNIX_EPOCH);
            clock.seed(seed);
            (0..4).map(|_| clock.spread(1.0..2.0)).collect::<Vec<_>>()
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
        assert!(choices(9).iter().all(|choice| (1.0..2.0).contains(choice)));
    }

    #[tokio::test]
    async fn a_running_clock_wakes_sleepers_by_itself() {
        let clock = Clock::running(Timestamp::UNIX_EPOCH);
        clock.sleep(Duration::from_millis(2)).await;
        assert!(clock.now().as_millisecond() >= 2);
    }

    #[tokio::test]
    async fn a_running_clock_can_be_moved_ahead() {
        let clock = Clock::running(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(MINUTE).await }
        });
        tokio::task::yield_now().await;
        clock.advance(MINUTE);
        sleeper.await.unwrap();
        assert!(clock.now().as_second() >= 60);
    }
}
