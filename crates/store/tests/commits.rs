//! Commits from many tasks are one order, seen alike by snapshots and watches.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

use windlass_store::{CommitError, Compacted, Expect, Revision, Store, WatchError, Write};

const TASKS: u64 = 8;
const WRITES: u64 = 50;

fn any(key: &str, value: &'static str) -> Write {
    Write { key: key.into(), expect: Expect::Any, value: Some(value.into()) }
}

async fn increment(store: &Store, key: &str) -> Revision {
    loop {
        let snapshot = store.snapshot();
        let write = match snapshot.get(key) {
            None => Write::create(key, "1"),
            Some(entry) => {
                let number: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
                Write::update(key, entry.modified, (number + 1).to_string())
            }
        };
        match store.commit(vec![write]).await {
            Ok(revision) => return revision,
            Err(CommitError::Precondition { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

async fn no_increment_is_lost(store: Store) {
    let mut watch = store.watch("/n/", store.revision()).unwrap();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..WRITES {
                    increment(&store, "/n/counter").await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let total = TASKS * WRITES;
    assert_eq!(store.snapshot().get("/n/counter").unwrap().value, total.to_string());
    assert_eq!(store.revision(), Revision(Revision::FIRST.0 + total));
    for expected in 1..=total {
        let event = watch.next().await.unwrap();
        assert_eq!(event.revision, Revision(Revision::FIRST.0 + expected));
        assert_eq!(event.entry.as_ref().unwrap().value, expected.to_string());
    }
    assert_eq!(watch.progress(), Some(store.revision()));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_increments_in_memory() {
    no_increment_is_lost(Store::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_increments_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    no_increment_is_lost(Store::open(dir.path().join("store")).unwrap()).await;
}

#[tokio::test]
async fn a_watch_from_the_past_has_no_gap_and_only_its_prefix() {
    let store = Store::in_memory();
    let start = store.commit(vec![any("/a/1", "x")]).await.unwrap();
    store.commit(vec![any("/b/1", "x")]).await.unwrap();
    store.commit(vec![any("/a/2", "x")]).await.unwrap();
    let mut watch = store.watch("/a/", start).unwrap();
    assert_eq!(watch.progress(), None);
    let deleted = store.commit(vec![Write { key: "/a/1".into(), expect: Expect::Any, value: None }]).await.unwrap();
    assert_eq!(&*watch.next().await.unwrap().key, "/a/2");
    let event = watch.next().await.unwrap();
    assert_eq!((event.revision, event.entry.is_none(), event.previous.is_some()), (deleted, true, true));
    assert!(watch.try_next().is_none());
}

#[tokio::test]
async fn the_compacted_past_is_refused() {
    let store = Store::in_memory();
    let old = store.commit(vec![any("/a", "1")]).await.unwrap();
    let new = store.commit(vec![any("/a", "2")]).await.unwrap();
    assert_eq!(store.snapshot_at(old).unwrap().get("/a").unwrap().value, "1");
    store.compact(new);
    assert_eq!(store.snapshot_at(old).unwrap_err(), Compacted { oldest: new });
    assert_eq!(store.watch("/", old).unwrap_err(), Compacted { oldest: new });
    assert!(store.watch("/", new).is_ok());
}

#[tokio::test]
async fn a_slow_watcher_is_told_and_the_others_go_on() {
    let store = Store::in_memory();
    let mut slow = store.watch("/", store.revision()).unwrap();
    let mut other = store.watch("/other", store.revision()).unwrap();
    for _ in 0..9_000 {
        store.commit(vec![any("/a", "1")]).await.unwrap();
    }
    store.commit(vec![any("/other", "1")]).await.unwrap();
    let mut taken = 0;
    let ending = loop {
        match slow.next().await {
            Ok(_) => taken += 1,
            Err(ending) => break ending,
        }
    };
    assert_eq!(ending, WatchError::Lagged);
    assert!(taken < 9_000);
    assert_eq!(&*other.next().await.unwrap().key, "/other");
}

#[tokio::test]
async fn ranges_page_through_a_snapshot() {
    let store = Store::in_memory();
    for key in ["/p/a", "/p/b", "/p/c", "/pp/d", "/o/z"] {
        store.commit(vec![Write::create(key, "1")]).await.unwrap();
    }
    let snapshot = store.snapshot();
    let keys = |after| snapshot.range("/p/", after).map(|(key, _)| key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys(None), ["/p/a", "/p/b", "/p/c"]);
    assert_eq!(keys(Some("/p/a")), ["/p/b", "/p/c"]);
    assert_eq!(keys(Some("/p/c")), Vec::<String>::new());
}
