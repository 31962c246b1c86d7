//! A revisioned, watchable log of bytes: transactions, snapshots, compaction, on disk or in memory.
//!
//! Every commit gets the next [`Revision`] inside one serialised step, and the events of that commit are published in
//! that order. Memory holds the index and a window of the recent past; the disk, if there is one, holds a copy that a
//! restart reads back. An answer to [`Store::commit`] is given after the sync that covers it.

mod compaction;
mod disk;
mod entry;
mod error;
#[cfg(test)]
mod fault;
mod history;
mod log;
#[cfg(test)]
mod model;
mod snapshot;
mod stage;
mod store;
mod watch;
mod writer;

pub use entry::{Entry, Event, Expect, Revision, Write};
pub use error::{CommitError, Compacted, OpenError, WatchError};
pub use snapshot::Snapshot;
pub use store::Store;
pub use watch::Watch;
