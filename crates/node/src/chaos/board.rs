//! What containers are to suffer: put up by the orders of chaos, read by whoever looks after a container.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::sandbox::{Faults, Request};

/// A container, by the uid of its Pod and its name.
type Key = (String, String);

/// What all containers are to suffer.
#[derive(Debug, Clone)]
pub(crate) struct Board(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    /// Changes with every order.
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    orders: u64,
    containers: HashMap<Key, Entry>,
}

/// What one container is to suffer.
#[derive(Debug, Default)]
struct Entry {
    /// By who ordered it, with the time until which it lasts and the number of the order.
    faults: BTreeMap<String, (Faults, Instant, u64)>,
    /// The number of the last order.
    number: u64,
    /// How often its program was to be killed, and the number of that order.
    kills: u64,
    /// The last order that was answered, and what of it could not be done.
    answered: (u64, Option<String>),
}

impl Default for Board {
    fn default() -> Self {
        Self(Arc::new(Shared { known: Mutex::default(), changes: watch::channel(0).0 }))
    }
}

impl Board {
    /// The place of a container.
    pub(crate) fn of(&self, uid: &str, container: &str) -> Ailment {
        Ailment { board: self.clone(), key: (uid.to_owned(), container.to_owned()) }
    }

    /// Lets a container suffer `faults` until then, on behalf of `owner`; the number of the order.
    pub(crate) fn order(&self, key: &Key, owner: &str, faults: Faults, until: Instant) -> u64 {
        self.change(key, |entry| drop(entry.faults.insert(owner.to_owned(), (faults, until, entry.number))))
    }

    /// Ends what a container suffers on behalf of `owner`; the number of the order.
    pub(crate) fn lift(&self, key: &Key, owner: &str) -> u64 {
        self.change(key, |entry| drop(entry.faults.remove(owner)))
    }

    /// Lets the program of a container be killed.
    pub(crate) fn kill(&self, key: &Key) {
        self.change(key, |entry| entry.kills += 1);
    }

    /// What became of an order; none as long as nobody says.
    pub(crate) fn answer(&self, key: &Key, number: u64) -> Option<Result<(), String>> {
        let known = self.lock();
        let (answered, problem) = &known.containers.get(key)?.answered;
        (*answered >= number).then(|| problem.clone().map_or(Ok(()), Err))
    }

    /// Forgets a container that has gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.lock().containers.remove(key);
    }

    fn change(&self, key: &Key, act: impl FnOnce(&mut Entry)) -> u64 {
        let mut known = self.lock();
        known.orders += 1;
        let number = known.orders;
        let entry = known.containers.entry(key.clone()).or_default();
        entry.number = number;
        act(entry);
        drop(known);
        self.0.changes.send_replace(number);
        number
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one container suffers.
#[derive(Debug, Clone)]
pub(crate) struct Ailment {
    board: Board,
    key: Key,
}

impl Ailment {
    /// What a program suffers that is started now.
    pub(crate) fn now(&self) -> Faults {
        self.since(u64::MAX)
    }

    /// What a program suffers that was started after the order `start`: pauses are for what ran at their time.
    fn since(&self, start: u64) -> Faults {
        let known = self.board.lock();
        let Some(entry) = known.containers.get(&self.key) else { return Faults::default() };
        let now = Instant::now();
        let lasting = entry.faults.values().filter(|(_, until, _)| *until > now);
        let all = lasting.map(|(faults, until, number)| {
            let paused = faults.paused && *number > start;
            Faults { limit: *until - now, paused, ..faults.clone() }
        });
        Faults { number: entry.number, ..all.fold(Faults::default(), Faults::and) }
    }

    /// Notes what became of an order.
    pub(crate) fn told(&self, number: u64, problem: Option<String>) {
        if let Some(entry) = self.board.lock().containers.get_mut(&self.key) {
            entry.answered = (number, problem);
        }
    }

    /// The orders from now on; what is suffered already is the first of them.
    pub(crate) fn orders(&self) -> Orders {
        let (start, kills) = self.last();
        Orders { ailment: self.clone(), changes: self.board.0.changes.subscribe(), start, sent: None, kills }
    }

    /// The number of the last order, and how often the program was to be killed.
    fn last(&self) -> (u64, u64) {
        self.board.lock().containers.get(&self.key).map_or((0, 0), |entry| (entry.number, entry.kills))
    }
}

/// What is asked of a container's supervisor, one after the other.
pub(crate) struct Orders {
    ailment: Ailment,
    changes: watch::Receiver<u64>,
    /// The last order before the program was started.
    start: u64,
    /// The last order that was passed on.
    sent: Option<u64>,
    kills: u64,
}

impl Orders {
    /// The next order. Safe to drop before it is done.
    pub(crate) async fn next(&mut self) -> Request {
        loop {
            if let Some(request) = self.due() {
                return request;
            }
            if self.changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn due(&mut self) -> Option<Request> {
        let (number, kills) = self.ailment.last();
        if kills > self.kills {
            self.kills = kills;
            return Some(Request::Kill);
        }
        if self.sent.is_some_and(|sent| sent >= number) {
            return None;
        }
        let (is_first, faults) = (self.sent.is_none(), self.ailment.since(self.start));
        self.sent = Some(number);
        if is_first && faults.is_nothing() {
            // A run that begins with nothing wrong needs no order; whoever waits for an answer has it.
            self.ailment.told(number, None);
            return None;
        }
        Some(Request::Faults(Box::new(faults)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key() -> Key {
        ("uid".to_owned(), "c".to_owned())
    }

    fn skew(seconds: i64) -> Faults {
        Faults { skew: Some(seconds), ..Faults::default() }
    }

    #[tokio::test]
    async fn orders_of_several_add_up_and_are_lifted_one_by_one() {
        let board = Board::default();
        let later = Instant::now() + Duration::from_secs(60);
        let mut orders = board.of("uid", "c").orders();
        board.order(&key(), "one", Faults { paused: true, ..Faults::default() }, later);
        let number = board.order(&key(), "two", skew(5), later);
        let Request::Faults(faults) = orders.next().await else { panic!("no faults") };
        assert_eq!((faults.number, faults.paused, faults.skew), (number, true, Some(5)));
        let begun = board.of("uid", "c").now();
        assert_eq!((begun.paused, begun.skew), (false, Some(5)), "a run that begins is not paused");
        let number = board.lift(&key(), "two");
        let Request::Faults(faults) = orders.next().await else { panic!("no faults") };
        assert_eq!((faults.paused, faults.skew), (true, None));
        assert_eq!(board.answer(&key(), number), None);
        board.of("uid", "c").told(number, Some("no".to_owned()));
        assert_eq!(board.answer(&key(), number), Some(Err("no".to_owned())));
    }

    #[tokio::test]
    async fn a_kill_meets_the_run_of_its_time_only() {
        let board = Board::default();
        let mut running = board.of("uid", "c").orders();
        board.kill(&key());
        assert_eq!(running.next().await, Request::Kill);
        let mut next = board.of("uid", "c").orders();
        let waited = tokio::time::timeout(Duration::from_millis(50), next.next()).await;
        assert!(waited.is_err(), "the next run goes on: {waited:?}");
    }

    #[test]
    fn what_is_over_is_not_suffered() {
        let board = Board::default();
        board.order(&key(), "one", skew(5), Instant::now());
        assert!(board.of("uid", "c").now().is_nothing());
    }
}
