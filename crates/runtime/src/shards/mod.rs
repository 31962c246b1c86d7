//! One controller over several replicas: each works on its shards, and a shard has one replica at a time.

mod assign;
mod keeper;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::leader::LeaderConfig;
use crate::queue::Key;
use windlass_clock::Clock;

pub(crate) use keeper::Keeper;

/// How a controller is divided.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// How many shards there are; the same for all replicas, and at least as many as there are replicas.
    pub count: u32,
    /// The leases: their namespace, the beginning of their names, and their times.
    pub lease: LeaderConfig,
}

/// The shards that this replica holds.
pub(crate) struct Division {
    clock: Clock,
    count: u32,
    held: Mutex<BTreeMap<u32, Arc<Shard>>>,
    /// Called with a shard that has come to this replica.
    gained: Mutex<Vec<Gained>>,
}

type Gained = Box<dyn Fn(u32) + Send + Sync>;

/// A shard that this replica holds.
#[derive(Debug, Default)]
struct Shard {
    /// Until when, in milliseconds of the clock.
    until_ms: AtomicU64,
    /// Whether it is to go to another replica: nothing new begins.
    leaving: AtomicBool,
    running: AtomicUsize,
}

impl Shard {
    fn is_valid(&self, now: Duration) -> bool {
        u128::from(self.until_ms.load(Ordering::SeqCst)) > now.as_millis()
    }
}

impl Division {
    pub(crate) fn new(clock: Clock, count: u32) -> Arc<Self> {
        Arc::new(Self { clock, count, held: Mutex::default(), gained: Mutex::default() })
    }

    /// Calls `gained` with every shard that comes to this replica from now on, and with those that it has.
    fn on_gain(&self, gained: Gained) {
        let shards: Vec<u32> = self.lock().keys().copied().collect();
        shards.into_iter().for_each(&gained);
        self.gained.lock().expect("listeners do not panic").push(gained);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<Shard>>> {
        self.held.lock().expect("no code that can panic runs under this lock")
    }

    /// The shards that this replica holds, and whether work on them is in progress.
    fn held(&self) -> BTreeMap<u32, bool> {
        self.lock().iter().map(|(number, shard)| (*number, shard.running.load(Ordering::SeqCst) > 0)).collect()
    }

    /// The lease of a shard was taken or renewed.
    fn hold(&self, number: u32, until: Duration) {
        let is_new = {
            let mut held = self.lock();
            let shard = held.entry(number).or_default();
            let was_valid = shard.is_valid(self.clock.elapsed());
            shard.until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
            !was_valid
        };
        if is_new {
            for gained in self.gained.lock().expect("listeners do not panic").iter() {
                gained(number);
            }
        }
    }

    /// Nothing new begins in this shard, or does so again.
    fn set_leaving(&self, number: u32, leaving: bool) {
        let shard = self.lock().get(&number).cloned();
        let Some(shard) = shard else { return };
        if shard.leaving.swap(leaving, Ordering::SeqCst) && !leaving {
            for gained in self.gained.lock().expect("listeners do not panic").iter() {
                gained(number);
            }
        }
    }

    /// The shard is no longer this replica's.
    fn drop_shard(&self, number: u32) {
        self.lock().remove(&number);
    }

    fn enter(&self, number: u32) -> Option<Pass> {
        let held = self.lock();
        let shard = held.get(&number)?;
        // Under the lock, so that a shard is never taken for idle between this question and its answer.
        if shard.leaving.load(Ordering::SeqCst) || !shard.is_valid(self.clock.elapsed()) {
            return None;
        }
        shard.running.fetch_add(1, Ordering::SeqCst);
        Some(Pass(shard.clone()))
    }
}

/// The keys of one controller, and which of them this replica works on.
pub(crate) struct Shards<Q> {
    division: Arc<Division>,
    /// All keys there are, to look at those of a shard that comes here.
    roster: Mutex<HashSet<Q>>,
}

impl<Q: Key> Shards<Q> {
    /// `look` is called for every key of a shard that comes to this replica.
    pub(crate) fn new(division: Arc<Division>, look: impl Fn(Q) + Send + Sync + 'static) -> Arc<Self> {
        let shards = Arc::new(Self { division: division.clone(), roster: Mutex::default() });
        let weak = Arc::downgrade(&shards);
        division.on_gain(Box::new(move |number| {
            let Some(shards) = weak.upgrade() else { return };
            let keys: Vec<Q> = shards.lock().iter().filter(|key| shards.number(key) == number).cloned().collect();
            keys.into_iter().for_each(&look);
        }));
        shards
    }

    /// Lets a run for `key` begin, if the key is this replica's.
    pub(crate) fn enter(&self, key: &Q, exists: bool) -> Option<Pass> {
        {
            let mut roster = self.lock();
            if exists {
                roster.insert(key.clone());
            } else {
                roster.remove(key);
            }
        }
        self.division.enter(self.number(key))
    }

    fn number(&self, key: &Q) -> u32 {
        assign::shard_of(&format!("{key:?}"), self.division.count)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Q>> {
        self.roster.lock().expect("no code that can panic runs under this lock")
    }
}

/// The right to work on a key of a shard; the shard stays while there is one.
pub(crate) struct Pass(Arc<Shard>);

impl Pass {
    /// Whether the shard is to go to another replica, or may have gone already.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.0.leaving.load(Ordering::SeqCst) || !self.0.is_valid(now)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

tokio::task_local! {
    /// The shard that the present run is for.
    static SHARD: Arc<Shard>;
}

/// Runs `work` with a pass: what it writes is refused once the shard may be somebody else's.
pub(crate) async fn within(pass: Pass, work: impl Future<Output = ()>) {
    SHARD.scope(pass.0.clone(), work).await;
    drop(pass);
}

/// The right to go on with the shard of the present run after it, if it is for one.
pub(crate) fn pass() -> Option<Pass> {
    let pass = |shard: &Arc<Shard>| {
        shard.running.fetch_add(1, Ordering::SeqCst);
        Pass(shard.clone())
    };
    SHARD.try_with(pass).ok()
}

/// Whether the present run, if it is for a shard, may write.
pub(crate) fn may_write(now: Duration) -> bool {
    SHARD.try_with(|shard| shard.is_valid(now)).unwrap_or(true)
}
