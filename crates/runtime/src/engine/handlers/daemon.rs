//! Daemons: tasks that live as long as their resource, and begin anew when they fail.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use windlass_clock::Clock;

use super::answer::Failure;
use super::retry::Retry;
use crate::controller::panic_text;
use crate::key::ObjectKey;
use crate::shards::{self, Pass};

/// How long a daemon that was told to end may take before it is dropped.
const END_MAX: Duration = Duration::from_secs(10);
/// A daemon that failed and then runs for this long is well again.
const WELL_AFTER: Duration = Duration::from_secs(30);
/// How often a daemon's shard is looked at.
const SHARD_LOOK: Duration = Duration::from_secs(1);

/// The daemons of all resources of an operator.
#[derive(Default)]
pub(super) struct Daemons(Mutex<HashMap<ObjectKey, BTreeMap<String, Daemon>>>);

struct Daemon {
    uid: String,
    /// The generation of the resource when it began.
    generation: i64,
    stop: CancellationToken,
    fate: Arc<Mutex<Fate>>,
    task: AbortOnDropHandle<()>,
}

/// How a daemon is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It runs.
    Running,
    /// It failed, and begins anew after a pause.
    Failing(String),
    /// It failed, and does not begin before the resource changes.
    GaveUp(String),
    /// It ended by itself.
    Finished,
    /// It was told to end.
    Stopped,
}

/// What a daemon is run with.
pub(super) struct Course {
    /// Runs it once; the number is that of the attempt.
    pub(super) run: Box<dyn Fn(u32) -> BoxFuture<'static, Result<(), Failure>> + Send + Sync>,
    pub(super) retry: Retry,
    pub(super) clock: Clock,
    pub(super) stop: CancellationToken,
    /// Called whenever it is otherwise than before.
    pub(super) on_change: Box<dyn Fn(&Fate) + Send + Sync>,
}

impl Daemons {
    /// Lets the daemon `id` of a resource run, if it does not; `course` is asked for only then.
    pub(super) fn keep(
        &self,
        key: &ObjectKey,
        id: &str,
        (uid, generation): (&str, i64),
        course: impl FnOnce() -> Course,
    ) {
        let mut all = self.lock();
        let daemons = all.entry(key.clone()).or_default();
        if daemons.get(id).is_some_and(|daemon| daemon.uid == uid && !daemon.is_to_begin(generation)) {
            return;
        }
        let course = course();
        let (stop, clock, fate) = (course.stop.clone(), course.clock.clone(), Arc::new(Mutex::new(Fate::Running)));
        let work = course.supervise(fate.clone());
        // It may write only while the shard of its resource is this replica's, and keeps the shard until it has ended.
        let task = match (shards::pass(), shards::pass()) {
            (Some(pass), Some(watched)) => {
                tokio::spawn(shards::within(pass, guarded(work, watched, clock, stop.clone())))
            }
            _ => tokio::spawn(work),
        };
        let task = AbortOnDropHandle::new(task);
        daemons.insert(id.to_owned(), Daemon { uid: uid.to_owned(), generation, stop, fate, task });
    }

    /// The daemons of a resource that fail, and why.
    pub(super) fn failures(&self, key: &ObjectKey) -> Vec<(String, String)> {
        let all = self.lock();
        let daemons = all.get(key).into_iter().flatten();
        let failures = daemons.filter_map(|(id, daemon)| match &*daemon.fate() {
            Fate::Failing(why) | Fate::GaveUp(why) => Some((id.clone(), why.clone())),
            Fate::Running | Fate::Finished | Fate::Stopped => None,
        });
        failures.collect()
    }

    /// Ends the daemons of a resource, and waits for that.
    pub(super) async fn stop(&self, key: &ObjectKey) {
        let daemons = self.lock().remove(key);
        end(daemons.into_iter().flatten().map(|(_, daemon)| daemon).collect()).await;
    }

    /// Ends all, and waits for that.
    pub(super) async fn stop_all(&self) {
        let all = std::mem::take(&mut *self.lock());
        end(all.into_values().flatten().map(|(_, daemon)| daemon).collect()).await;
    }

    /// Drops the daemons of a resource that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, BTreeMap<String, Daemon>>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

impl Daemon {
    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().expect("no code that can panic runs under this lock")
    }

    fn is_to_begin(&self, generation: i64) -> bool {
        match &*self.fate() {
            Fate::Running | Fate::Failing(_) => self.task.is_finished(),
            Fate::GaveUp(_) => self.generation != generation,
            Fate::Stopped => true,
            Fate::Finished => false,
        }
    }
}

async fn end(daemons: Vec<Daemon>) {
    for daemon in &daemons {
        daemon.stop.cancel();
    }
    let wait = async {
        for daemon in daemons {
            // Its end may be a panic of its task, which is an end as well.
            let _ = daemon.task.await;
        }
    };
    if tokio::time::timeout(END_MAX, wait).await.is_err() {
        tracing::warn!("A daemon did not end within {END_MAX:?} and is dropped");
    }
}

/// Runs a daemon while its shard is this replica's.
async fn guarded(work: impl Future<Output = ()> + Send, pass: Pass, clock: Clock, stop: CancellationToken) {
    let mut work = std::pin::pin!(work);
    let leave = async {
        while !pass.is_over(clock.elapsed()) {
            tokio::time::sleep(SHARD_LOOK).await;
        }
    };
    tokio::select! {
        () = &mut work => return,
        () = leave => stop.cancel(),
    }
    if tokio::time::timeout(END_MAX, work).await.is_err() {
        tracing::warn!("A daemon of a shard that leaves did not end within {END_MAX:?} and is dropped");
    }
}

impl Course {
    /// Runs the daemon until it ends by itself, gives up, or is told to end.
    async fn supervise(self, fate: Arc<Mutex<Fate>>) {
        let (mut attempt, mut since) = (0, self.clock.now());
        loop {
            attempt += 1;
            let began = self.clock.elapsed();
            let ended = self.attempt(attempt, &fate).await;
            if self.stop.is_cancelled() {
                return self.becomes(&fate, Fate::Stopped);
            }
            let Err(failure) = ended else { return self.becomes(&fate, Fate::Finished) };
            let now = self.clock.now();
            if self.clock.elapsed().saturating_sub(began) >= WELL_AFTER {
                (attempt, since) = (1, now);
            }
            let pause = self.retry.pause(attempt, failure.after());
            if failure.is_permanent() || self.retry.is_over(attempt, since, now + pause) {
                return self.becomes(&fate, Fate::GaveUp(failure.why()));
            }
            self.becomes(&fate, Fate::Failing(failure.why()));
            tokio::select! {
                () = self.stop.cancelled() => return self.becomes(&fate, Fate::Stopped),
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Runs it once; one that goes on for long enough is no longer said to fail.
    async fn attempt(&self, attempt: u32, fate: &Mutex<Fate>) -> Result<(), Failure> {
        let mut run = AssertUnwindSafe((self.run)(attempt)).catch_unwind();
        let first = tokio::select! {
            ended = &mut run => Some(ended),
            () = self.clock.sleep(WELL_AFTER), if attempt > 1 => None,
        };
        let ended = match first {
            Some(ended) => ended,
            None => {
                self.becomes(fate, Fate::Running);
                run.await
            }
        };
        ended.unwrap_or_else(|panic| Err(Failure::temporary(format!("panic: {}", panic_text(&*panic)))))
    }

    fn becomes(&self, fate: &Mutex<Fate>, new: Fate) {
        *fate.lock().expect("no code that can panic runs under this lock") = new.clone();
        (self.on_change)(&new);
    }
}
