//! What the server does on its own: it forgets the far past and lets old events go.

use std::{collections::VecDeque, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_store::{CommitError, Revision, Snapshot, Store, Write};

use crate::object::Object;

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(60);
/// How many rounds the past is kept, so that slow clients can go on with a list or a watch.
const ROUNDS_KEPT: usize = 5;
/// How long events are kept.
const EVENT_AGE_MAX: SignedDuration = SignedDuration::from_hours(1);
/// How many events go in one commit.
const BATCH_MAX: usize = 500;
const EVENTS: &str = "/core/events/";

/// Works until `stop`.
pub(crate) async fn run(store: Store, clock: Clock, stop: CancellationToken) {
    let mut past: VecDeque<Revision> = VecDeque::from([store.revision()]);
    loop {
        tokio::select! {
            () = clock.sleep(INTERVAL) => {}
            () = stop.cancelled() => return,
        }
        compact(&store, &mut past);
        if let Err(error) = forget_events(&store, clock.now()).await {
            tracing::warn!(%error, "old events could not be removed; trying again later");
        }
    }
}

fn compact(store: &Store, past: &mut VecDeque<Revision>) {
    past.push_back(store.revision());
    while past.len() > ROUNDS_KEPT {
        if let Some(revision) = past.pop_front() {
            store.compact(revision);
        }
    }
}

async fn forget_events(store: &Store, now: Timestamp) -> Result<(), CommitError> {
    let old = old_events(&store.snapshot(), now);
    for batch in old.chunks(BATCH_MAX) {
        match store.commit(batch.to_vec()).await {
            // An event that was counted again in between stays; the next round sees to the rest.
            Ok(_) | Err(CommitError::Precondition { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn old_events(snapshot: &Snapshot, now: Timestamp) -> Vec<Write> {
    let is_old = |event: &Value| {
        let text = |field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default();
        let series = event.pointer("/series/lastObservedTime").and_then(Value::as_str).unwrap_or_default();
        let times = [event.meta("creationTimestamp"), text("lastTimestamp"), text("eventTime"), series];
        let latest = times.into_iter().filter_map(|time| time.parse::<Timestamp>().ok()).max();
        latest.is_none_or(|latest| now.duration_since(latest) > EVENT_AGE_MAX)
    };
    let events = snapshot.range(EVENTS, None);
    let old = events.filter(|(_, entry)| serde_json::from_slice(&entry.value).is_ok_and(|event| is_old(&event)));
    old.map(|(key, entry)| Write::delete(&**key, entry.modified)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn events_go_after_an_hour_without_news() {
        let store = Store::in_memory();
        let event = |created: &str, last: &str| {
            json!({"metadata": {"creationTimestamp": created}, "lastTimestamp": last}).to_string()
        };
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z");
        let writes = [("old", event(early, early)), ("counted", event(early, late)), ("new", event(late, late))];
        for (name, value) in writes {
            store.commit(vec![Write::create(format!("{EVENTS}a/{name}"), value)]).await.unwrap();
        }
        forget_events(&store, "2026-01-01T02:00:00Z".parse().unwrap()).await.unwrap();
        let snapshot = store.snapshot();
        let left: Vec<&str> = snapshot.range(EVENTS, None).map(|(key, _)| &**key).collect();
        assert_eq!(left, ["/core/events/a/counted", "/core/events/a/new"]);
    }

    #[test]
    fn the_past_is_kept_for_some_rounds() {
        let store = Store::in_memory();
        let mut past = VecDeque::from([store.revision()]);
        (0..10).for_each(|_| compact(&store, &mut past));
        assert_eq!(past.len(), ROUNDS_KEPT);
    }
}
