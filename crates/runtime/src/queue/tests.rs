//! What a queue promises: order, once, back-off.

use jiff::Timestamp;

use super::state::NORMAL_PER_LOW;
use super::*;

struct Fixture {
    clock: Clock,
    queue: Queue<&'static str>,
}

fn fixture() -> Fixture {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let queue = Queue::new(clock.clone(), Backoff::default(), QueueMetrics::default());
    Fixture { clock, queue }
}

impl Fixture {
    fn take(&self) -> Option<Taken<&'static str>> {
        match self.queue.try_take() {
            Next::Key(taken) => Some(taken),
            _ => None,
        }
    }

    fn drain(&self) -> Vec<&'static str> {
        let mut keys = Vec::new();
        while let Some(taken) = self.take() {
            keys.push(taken.key);
            self.queue.finish(taken, Verdict::Done);
        }
        keys
    }

    fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }
}

#[test]
fn keys_come_once_and_in_order() {
    let fixture = fixture();
    for key in ["a", "b", "a", "c", "b"] {
        fixture.queue.add(key, Priority::Normal);
    }
    assert_eq!(fixture.drain(), ["a", "b", "c"]);
}

#[test]
fn a_key_at_work_is_not_given_out_again_but_runs_once_more() {
    let fixture = fixture();
    fixture.queue.add("a", Priority::Normal);
    let taken = fixture.take().unwrap();
    fixture.queue.add("a", Priority::Normal);
    fixture.queue.add("a", Priority::Normal);
    assert!(fixture.take().is_none());
    fixture.queue.finish(taken, Verdict::Done);
    assert_eq!(fixture.drain(), ["a"]);
}

#[test]
fn news_go_before_the_first_list_and_raise_a_listed_key() {
    let fixture = fixture();
    fixture.queue.add("listed", Priority::Low);
    fixture.queue.add("raised", Priority::Low);
    fixture.queue.add("changed", Priority::Normal);
    fixture.queue.add("raised", Priority::Normal);
    assert_eq!(fixture.drain(), ["changed", "raised", "listed"]);
}

#[test]
fn low_priority_does_not_starve() {
    const KEYS: [&str; 12] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"];
    let fixture = fixture();
    fixture.queue.add("low", Priority::Low);
    for key in KEYS {
        fixture.queue.add(key, Priority::Normal);
    }
    let position = fixture.drain().iter().position(|key| *key == "low");
    assert_eq!(position, Some(NORMAL_PER_LOW as usize));
}

#[test]
fn failures_wait_longer_each_time_and_success_forgets() {
    let fixture = fixture();
    fixture.queue.add("a", Priority::Normal);
    for delay_ms in [5, 10, 20, 40] {
        let taken = fixture.take().unwrap();
        fixture.queue.finish(taken, Verdict::Failed);
        fixture.advance_ms(delay_ms - 1);
        assert!(fixture.take().is_none(), "came before {delay_ms} ms");
        fixture.advance_ms(1);
    }
    let taken = fixture.take().unwrap();
    assert_eq!(taken.failures, 4);
    fixture.queue.finish(taken, Verdict::Done);
    fixture.queue.add("a", Priority::Normal);
    assert_eq!(fixture.take().unwrap().failures, 0);
}

#[test]
fn a_storm_of_changes_neither_consumes_attempts_nor_moves_the_retry() {
    let fixture = fixture();
    fixture.queue.add("a", Priority::Normal);
    for _ in 0..12 {
        let taken = fixture.take().unwrap();
        fixture.queue.finish(taken, Verdict::Failed);
        let backoff_ms = Backoff::default().delay(fixture.queue.lock().retries["a"].failures).as_millis() as u64;
        fixture.advance_ms(backoff_ms);
    }
    let taken = fixture.take().unwrap();
    fixture.queue.finish(taken, Verdict::Failed);
    let retry_due = fixture.queue.lock().retries["a"].due;

    let mut runs = 0;
    for _ in 0..100 {
        fixture.queue.add("a", Priority::Normal);
        if let Some(taken) = fixture.take() {
            assert_eq!(taken.failures, 13);
            fixture.queue.finish(taken, Verdict::Failed);
            runs += 1;
        }
        fixture.advance_ms(100);
    }
    assert_eq!(fixture.queue.lock().retries["a"].due, retry_due);
    assert!((9..=10).contains(&runs), "{runs} early runs in ten seconds");
}

#[test]
fn a_change_after_a_first_failure_runs_almost_at_once() {
    let fixture = fixture();
    fixture.queue.add("a", Priority::Normal);
    let taken = fixture.take().unwrap();
    fixture.queue.finish(taken, Verdict::FailedUntil(Duration::from_secs(600)));
    fixture.queue.add("a", Priority::Normal);
    fixture.advance_ms(1000);
    assert!(fixture.take().is_some());
}

#[test]
fn the_sooner_of_two_delays_wins_and_a_run_serves_both() {
    let fixture = fixture();
    fixture.queue.add_after("a", Duration::from_secs(60));
    fixture.queue.add_after("a", Duration::from_secs(10));
    fixture.queue.add_after("a", Duration::from_secs(30));
    fixture.advance_ms(10_000);
    assert_eq!(fixture.drain(), ["a"]);
    fixture.advance_ms(60_000);
    assert_eq!(fixture.drain(), [""; 0]);
}

#[tokio::test]
async fn takers_are_woken_by_keys_time_and_the_end() {
    let fixture = fixture();
    let taker = || {
        let queue = fixture.queue.clone();
        tokio::spawn(async move { queue.take().await.map(|taken| taken.key) })
    };
    let (first, second, third) = (taker(), taker(), taker());
    tokio::task::yield_now().await;
    fixture.queue.add("a", Priority::Normal);
    fixture.queue.add_after("b", Duration::from_secs(5));
    tokio::task::yield_now().await;
    fixture.advance_ms(5000);
    tokio::task::yield_now().await;
    while [&first, &second, &third].iter().filter(|taker| taker.is_finished()).count() < 2 {
        tokio::task::yield_now().await;
    }
    fixture.queue.close();
    let mut keys = [first.await.unwrap(), second.await.unwrap(), third.await.unwrap()];
    keys.sort();
    assert_eq!(keys, [None, Some("a"), Some("b")]);
}

#[test]
fn a_look_that_is_due_when_the_clock_jumps_is_not_put_off() {
    let fixture = fixture();
    fixture.queue.add("a", Priority::Normal);
    let taken = fixture.take().unwrap();
    fixture.advance_ms(120_000);
    fixture.queue.finish(taken, Verdict::After(Duration::from_secs(90)));
    let taken = fixture.take().expect("it came while the key was worked on");
    fixture.queue.finish(taken, Verdict::After(Duration::from_secs(90)));
    fixture.advance_ms(80_000);
    assert!(fixture.take().is_none());
    fixture.advance_ms(10_000);
    assert_eq!(fixture.drain(), ["a"]);
}

#[test]
fn a_resync_waits_behind_what_changed_but_not_for_ever() {
    let fixture = fixture();
    fixture.queue.resync("old", Duration::from_millis(5));
    fixture.advance_ms(5);
    let changed = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for key in changed {
        fixture.queue.add(key, Priority::Normal);
    }
    let order = fixture.drain();
    assert_eq!(order.iter().position(|key| *key == "old"), Some(8), "{order:?}");
}
