//! Loss of power at every step that a store takes on its disk.

use crate::fault::{TestDisk, entries};
use crate::{Expect, Revision, Store, Write};

/// Commits of the story, enough for a log to be written anew more than once.
const COMMITS: u64 = 60;
/// What of the unsynced is tried to survive each time.
const SURVIVORS: u64 = 4;
/// Steps between those that are tried in every run of the tests; the rest is for whoever sets `WINDLASS_RUNS`.
const STRIDE: usize = 7;

fn write(number: u64) -> Write {
    let value = format!("{number}-{}", "x".repeat(600));
    Write { key: format!("/k/{}", number % 4), expect: Expect::Any, value: Some(value.into()) }
}

/// Tells the story until the power fails after so many steps; the last commit that was acknowledged, and whether all was
/// told.
async fn story(disk: &TestDisk, steps: i64) -> (u64, bool) {
    disk.cut_power_after(steps);
    let Ok(store) = disk.store() else { return (0, false) };
    for number in 1..=COMMITS {
        match store.commit(vec![write(number)]).await {
            Ok(revision) => assert_eq!(revision, Revision(Revision::FIRST.0 + number)),
            Err(_) => return (number - 1, false),
        }
    }
    store.close().await;
    (COMMITS, !disk.has_no_power())
}

fn check(store: &Store, acknowledged: u64, about: &str) {
    let snapshot = store.snapshot();
    let found = snapshot.revision().0 - Revision::FIRST.0;
    assert!(found == acknowledged || found == acknowledged + 1, "{about}: {found} commits, {acknowledged} were told");
    for (key, entry) in entries(&snapshot) {
        let newest = (1..=found).rev().find(|number| format!("/k/{}", number % 4) == key).expect("it was written");
        assert_eq!(Some(&entry.value), write(newest).value.as_ref(), "{about}: {key}");
        assert_eq!(entry.modified.0 - Revision::FIRST.0, newest, "{about}: {key}");
    }
}

#[tokio::test]
async fn no_loss_of_power_loses_what_was_acknowledged() {
    let all = std::env::var("WINDLASS_RUNS").is_ok();
    let mut steps = 0;
    loop {
        let disk = TestDisk::small();
        let (acknowledged, is_whole) = story(&disk, steps).await;
        for survivors in 0..SURVIVORS {
            let left = disk.after_crash(survivors);
            let about = format!("power cut after step {steps}, survivors {survivors}");
            match left.store() {
                Ok(store) => {
                    check(&store, acknowledged, &about);
                    // What a start made of it is as good as before.
                    store
                        .commit(vec![write(acknowledged + 2)])
                        .await
                        .unwrap_or_else(|error| panic!("{about}: {error}"));
                }
                Err(error) => panic!("{about}: {error}"),
            }
        }
        if is_whole {
            break;
        }
        steps += if all { 1 } else { i64::try_from(STRIDE).unwrap_or(1) };
    }
    assert!(steps > 100, "the story has {steps} steps only, which is not all of it");
}
