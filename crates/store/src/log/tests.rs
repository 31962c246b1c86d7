//! Every way in which a log can end: what a crash leaves is read, what damage leaves is refused.

use crate::{
    OpenError, Revision, Store, Write,
    fault::{SECTOR, TestDisk, entries},
};

/// Longer than some sectors, and not the same all over.
fn value(seed: usize) -> String {
    (0..300).map(|index| format!("{:05}", index * 7919 + seed)).collect()
}

async fn fill(store: &Store, count: usize) -> Revision {
    let mut revision = store.revision();
    for index in 0..count {
        revision = store.commit(vec![Write::create(format!("/{index}"), value(index))]).await.unwrap();
    }
    revision
}

/// A log with three records that was not closed.
async fn unclosed() -> (TestDisk, Vec<u8>) {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    fill(&store, 3).await;
    let bytes = disk.bytes();
    drop(store);
    (disk, bytes)
}

#[tokio::test]
async fn a_record_that_lost_sectors_is_as_if_it_was_never_written() {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    let revision = fill(&store, 3).await;
    let before = entries(&store.snapshot());
    disk.fail_syncs(true);
    store.commit(vec![Write::create("/lost", value(9))]).await.unwrap_err();
    let written: Vec<usize> = disk.unsynced().into_iter().collect();
    assert!(written.len() >= 3, "{written:?}");
    for lost in 1..1_u32 << written.len() {
        let survives =
            |sector: usize| written.iter().position(|found| *found == sector).is_some_and(|at| lost & (1 << at) == 0);
        let again = disk.after_power_loss(survives).store().unwrap();
        assert_eq!((again.revision(), entries(&again.snapshot())), (revision, before.clone()), "{lost:b}");
        // What was left of it is not in the way of the next one.
        again.commit(vec![Write::create("/next", "1")]).await.unwrap();
    }
    let whole = disk.after_power_loss(|_| true).store().unwrap();
    assert_eq!(whole.revision(), Revision(revision.0 + 1));
}

#[tokio::test]
async fn what_was_cut_off_does_not_come_back_behind_a_shorter_record() {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    fill(&store, 1).await;
    disk.fail_syncs(true);
    store.commit(vec![Write::create("/lost", value(9))]).await.unwrap_err();
    let first = disk.unsynced().into_iter().next().unwrap();
    let left = disk.after_power_loss(|sector| sector != first);
    let again = left.store().unwrap();
    again.commit(vec![Write::create("/short", "1")]).await.unwrap();
    let crashed = left.after_power_loss(|_| false).store().unwrap();
    assert_eq!(entries(&crashed.snapshot()), entries(&again.snapshot()));
}

fn is_refused(bytes: Vec<u8>) -> bool {
    match TestDisk::holding(bytes).store() {
        Err(OpenError::Corrupt { reason, .. }) => !reason.is_empty(),
        Err(other) => panic!("{other}"),
        Ok(_) => false,
    }
}

/// Where the records of a log end.
fn last_byte(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap()
}

#[tokio::test]
async fn a_changed_bit_is_found_wherever_it_is() {
    let (disk, _) = unclosed().await;
    let closed = disk.bytes();
    for at in (0..last_byte(&closed)).step_by(31) {
        let mut bytes = closed.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(is_refused(bytes), "byte {at}");
    }
}

#[tokio::test]
async fn a_changed_bit_before_the_last_record_is_found_after_a_crash_too() {
    let (_, crashed) = unclosed().await;
    let record = (last_byte(&crashed) - SECTOR) / 3;
    for at in (SECTOR..SECTOR + 2 * record - 16).step_by(29) {
        let mut bytes = crashed.clone();
        bytes[at] ^= 0x10;
        assert!(is_refused(bytes), "byte {at}");
    }
}

#[tokio::test]
async fn a_shortened_log_is_refused() {
    let (disk, _) = unclosed().await;
    let closed = disk.bytes();
    for length in [0, 1, SECTOR - 1, SECTOR, SECTOR + 100, last_byte(&closed) / 2, last_byte(&closed) - 8] {
        assert!(is_refused(closed[..length].to_vec()), "{length} bytes");
    }
    // The zeros that were reserved are not needed.
    assert!(!is_refused(closed[..(last_byte(&closed) + 1).next_multiple_of(8)].to_vec()));
}

#[tokio::test]
async fn a_sector_of_zeros_in_the_middle_is_refused() {
    let (_, crashed) = unclosed().await;
    for sector in 1..2 * (last_byte(&crashed) / SECTOR) / 3 {
        let mut bytes = crashed.clone();
        bytes[sector * SECTOR..][..SECTOR].fill(0);
        assert!(is_refused(bytes), "sector {sector}");
    }
}
