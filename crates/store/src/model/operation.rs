//! What is done in a run, as plain data: what a number means follows from where the run is.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Keys that are written; two of them begin alike without being of one prefix.
pub(super) const KEYS: [&str; 6] = ["/a/1", "/a/2", "/ab/1", "/b/1", "/b/2", "/c"];
/// Prefixes that are watched.
pub(super) const PREFIXES: [&str; 5] = ["/", "/a/", "/a", "/b/", "/c"];

/// One write of a commit: which key, and how.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Whatever is there.
    Put(usize),
    /// If it is not there.
    Create(usize),
    /// If it is what is there now.
    Update(usize),
    /// If it is what was there so many commits ago.
    UpdateStale(usize, u64),
    /// Whatever is there.
    Remove(usize),
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Commits changes.
    Commit(Vec<Change>),
    /// Commits while the disk refuses to sync.
    Refused(Vec<Change>),
    /// Commits while the power fails after so many steps of the disk; what was not synced survives as the number says.
    PowerCut(Vec<Change>, u8, u64),
    /// Opens a watch of a prefix from so many revisions ago.
    Open(usize, u64),
    /// Takes so many events of a watch.
    Take(usize, usize),
    /// Asks how far a watch is.
    Progress(usize),
    /// Closes a watch and opens it where it was.
    Resume(usize),
    /// Reads everything, now or as it was so many revisions ago.
    Read(Option<u64>),
    /// Forgets the past but for so many revisions.
    Compact(u64),
    /// Loses power between operations.
    Crash(u64),
    /// Ends in order and starts again.
    Restart,
}

/// The operations of a seed.
pub(super) fn generate(seed: u64, count: usize) -> Vec<Operation> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..count).map(|_| one(&mut random)).collect()
}

fn one(random: &mut StdRng) -> Operation {
    match random.random_range(0..100) {
        0..45 => Operation::Commit(changes(random)),
        45..48 => Operation::Refused(changes(random)),
        48..51 => Operation::PowerCut(changes(random), random.random_range(0..6), random.random()),
        51..60 => Operation::Open(random.random_range(0..PREFIXES.len()), random.random_range(0..12)),
        60..78 => Operation::Take(random.random_range(0..8), random.random_range(1..6)),
        78..83 => Operation::Progress(random.random_range(0..8)),
        83..86 => Operation::Resume(random.random_range(0..8)),
        86..94 => Operation::Read(random.random_bool(0.5).then(|| random.random_range(0..12))),
        94..96 => Operation::Compact(random.random_range(0..10)),
        96..98 => Operation::Crash(random.random()),
        _ => Operation::Restart,
    }
}

fn changes(random: &mut StdRng) -> Vec<Change> {
    let count = [1, 1, 1, 2, 3][random.random_range(0..5)];
    (0..count).map(|_| change(random)).collect()
}

fn change(random: &mut StdRng) -> Change {
    let key = random.random_range(0..KEYS.len());
    match random.random_range(0..10) {
        0..3 => Change::Put(key),
        3..5 => Change::Create(key),
        5..7 => Change::Update(key),
        7 => Change::UpdateStale(key, random.random_range(1..4)),
        _ => Change::Remove(key),
    }
}
