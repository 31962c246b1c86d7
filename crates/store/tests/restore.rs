//! A store goes back to a state that it had.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

use windlass_store::{Expect, Store, Write};

fn put(key: &str, value: &'static str) -> Write {
    Write { key: key.into(), expect: Expect::Any, value: Some(value.into()) }
}

fn contents(store: &Store) -> Vec<(String, String)> {
    let snapshot = store.snapshot();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    snapshot.range("", None).map(|(key, entry)| (key.to_string(), text(&entry.value))).collect()
}

async fn changed() -> (Store, windlass_store::Snapshot, Vec<(String, String)>) {
    let store = Store::in_memory();
    store.commit(vec![put("/kept", "1"), put("/edited", "1"), put("/removed", "1")]).await.unwrap();
    let (past, wanted) = (store.snapshot(), contents(&store));
    store.commit(vec![put("/edited", "2"), put("/added", "1")]).await.unwrap();
    let removed = store.snapshot().get("/removed").unwrap().modified;
    store.commit(vec![Write::delete("/removed", removed)]).await.unwrap();
    (store, past, wanted)
}

#[tokio::test]
async fn watchers_see_the_changes_that_lead_back() {
    let (store, past, wanted) = changed().await;
    let mut watch = store.watch("/", store.revision()).unwrap();
    let revision = store.restore(&past).await.unwrap();
    assert_eq!(contents(&store), wanted);
    let mut seen = Vec::new();
    while let Some(Ok(event)) = watch.try_next() {
        assert_eq!(event.revision, revision);
        seen.push((event.key.to_string(), event.entry.is_some(), event.previous.is_some()));
    }
    let expected = [("/added", false, true), ("/edited", true, true), ("/removed", true, false)];
    assert_eq!(seen, expected.map(|(key, entry, previous)| (key.to_owned(), entry, previous)));
}

#[tokio::test]
async fn what_changed_is_found_when_the_past_is_compacted() {
    let (store, past, wanted) = changed().await;
    store.compact(store.revision());
    store.restore(&past).await.unwrap();
    assert_eq!(contents(&store), wanted);
}

#[tokio::test]
async fn going_nowhere_is_no_commit() {
    let (store, past, _) = changed().await;
    let back = store.restore(&past).await.unwrap();
    assert_eq!(store.restore(&past).await.unwrap(), back);
    assert_eq!(store.revision(), back);
}
