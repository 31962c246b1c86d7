//! Priority levels: how many requests of each are answered at the same time, and how many may wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_store::Snapshot;

use super::LEVELS;
use crate::{ApiError, object::Object};

/// How long a request waits for a seat: a quarter of what a request may take.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// When a client that was turned away may come again.
const RETRY_AFTER_SECONDS: u32 = 1;

/// One priority level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) name: String,
    pub(super) uid: String,
    size: Option<Size>,
    seats: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// How large a level is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    seats: usize,
    /// How many may wait; none where requests are turned away at once.
    queue: usize,
}

/// A place among the requests that are answered now.
#[derive(Debug)]
pub(crate) struct Seat(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limited {
    nominal_concurrency_shares: Option<u32>,
    limit_response: LimitResponse,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    queuing: Option<Queuing>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Queuing {
    queues: usize,
    queue_length_limit: usize,
}

/// What a level without a number gets.
const SHARES_DEFAULT: u32 = 30;

/// The levels of a snapshot, which share `seats`; those of `before` that have not changed go on.
pub(super) fn levels(snapshot: &Snapshot, seats: u32, before: &[Arc<Level>]) -> Vec<Arc<Level>> {
    let objects = snapshot.range(LEVELS, None).filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok());
    let objects: Vec<(Value, Option<Limited>)> =
        objects.map(|object: Value| (limited(&object), object)).map(|(limited, object)| (object, limited)).collect();
    let shares = |limited: &Limited| limited.nominal_concurrency_shares.unwrap_or(SHARES_DEFAULT);
    let total: u32 = objects.iter().filter_map(|(_, limited)| limited.as_ref()).map(shares).sum();
    let size = |limited: &Limited| Size {
        seats: usize::try_from((seats * shares(limited)).div_ceil(total.max(1))).unwrap_or(usize::MAX),
        queue: limited.limit_response.queuing.as_ref().map_or(0, |queuing| queuing.queues * queuing.queue_length_limit),
    };
    let level = |(object, limited): &(Value, Option<Limited>)| {
        let (name, uid, size) = (object.name(), object.uid(), limited.as_ref().map(size));
        let same = before.iter().find(|level| level.name == name && level.uid == uid && level.size == size);
        same.cloned().unwrap_or_else(|| Arc::new(Level::new(name, uid, size)))
    };
    objects.iter().map(level).collect()
}

/// What limits the level; `None` for the exempt one.
fn limited(level: &Value) -> Option<Limited> {
    (level["spec"]["type"] != "Exempt").then(|| Limited::deserialize(&level["spec"]["limited"]).unwrap_or_default())
}

impl Level {
    fn new(name: &str, uid: &str, size: Option<Size>) -> Self {
        let seats = size.map_or(0, |size| size.seats.min(Semaphore::MAX_PERMITS));
        let (name, uid, waiting) = (name.to_owned(), uid.to_owned(), AtomicUsize::new(0));
        Self { name, uid, size, seats: Arc::new(Semaphore::new(seats)), waiting }
    }

    /// A seat; `None` if the level needs none.
    pub(super) async fn seat(&self) -> Result<Option<Seat>, ApiError> {
        let Some(size) = self.size else { return Ok(None) };
        if let Ok(permit) = Arc::clone(&self.seats).try_acquire_owned() {
            return Ok(Some(Seat(permit)));
        }
        let _waiting = Waiting::begin(&self.waiting, size.queue).ok_or_else(full)?;
        match tokio::time::timeout(WAIT_MAX, Arc::clone(&self.seats).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(Seat(permit))),
            _ => Err(full()),
        }
    }
}

fn full() -> ApiError {
    ApiError::too_many_requests("too many requests, please try again later", RETRY_AFTER_SECONDS)
}

/// A request in the queue of a level.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let entered = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < max).then_some(now + 1));
        entered.ok().map(|_| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_level_lets_some_wait_and_turns_the_rest_away() {
        let level = Arc::new(Level::new("l", "u", Some(Size { seats: 1, queue: 1 })));
        let held = level.seat().await.unwrap();
        let waiter = tokio::spawn({
            let level = Arc::clone(&level);
            async move { level.seat().await.map(|seat| seat.is_some()) }
        });
        tokio::task::yield_now().await;
        assert_eq!(level.seat().await.unwrap_err().code, 429);
        drop(held);
        assert!(waiter.await.unwrap().unwrap());
    }

    #[tokio::test]
    async fn the_exempt_level_is_never_full() {
        let level = Level::new("exempt", "u", None);
        assert!(level.seat().await.unwrap().is_none());
    }
}
