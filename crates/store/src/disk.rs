//! The durable copy of the store: its log, which is written anew without the past once most of it is past.

use std::{fmt, io, sync::Arc};

use crate::{
    Event, OpenError, Snapshot,
    compaction::Compaction,
    log::{Damage, Log, Medium, Place, Record, change_bytes},
    stage::Staged,
};

/// How many times as long as its entries a log may become.
const GROWTH_MAX: u64 = 2;
/// A larger buffer than this is not kept for the next batch.
const RECORD_BYTES_KEPT: usize = 4 << 20;

/// The open log.
pub(crate) struct Disk {
    place: Arc<dyn Place>,
    log: Log,
    /// Whether the last record failed, so that some of it may be there.
    is_failed: bool,
    /// Whether the log is at its place after a crash, too.
    is_settled: bool,
    record: Record,
    /// How long the log would be without its past.
    live_bytes: u64,
    /// How long it may become before it is written anew.
    compact_at: u64,
    compaction: Option<Compaction>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Disk").field("path", &self.place.path()).finish_non_exhaustive()
    }
}

impl Disk {
    /// The log at `place`, which is made if it is not there, and what it holds.
    pub(crate) fn open(place: Arc<dyn Place>) -> Result<(Self, Snapshot), OpenError> {
        let medium = match place.open()? {
            Some(medium) => medium,
            None => make(&*place)?,
        };
        place.discard();
        let (log, content) = Log::open(medium).map_err(|damage| match damage {
            Damage::Found(reason) => OpenError::Corrupt { path: place.path().to_owned(), reason },
            Damage::Io(error) => OpenError::of(place.path(), error),
        })?;
        let live_bytes = content.live_bytes;
        let mut disk = Self {
            place,
            log,
            is_failed: false,
            is_settled: true,
            record: Record::default(),
            live_bytes,
            compact_at: 0,
            compaction: None,
        };
        disk.compact_at = disk.allowance();
        Ok((disk, content.snapshot))
    }

    /// Writes the commits and syncs once. After an error nothing of them is there; only where the process dies before it
    /// gets to write again may the next start find all of them.
    pub(crate) fn write(&mut self, commits: &[Staged]) -> io::Result<()> {
        let Some(last) = commits.last() else { return Ok(()) };
        if self.is_failed {
            self.log.clear_tail()?;
            self.is_failed = false;
        }
        if !self.is_settled {
            self.place.settle()?;
            self.is_settled = true;
        }
        self.record.clear();
        for event in commits.iter().flat_map(|commit| &commit.events) {
            self.record.add(&event.key, event.entry.as_ref());
        }
        if let Err(error) = self.log.append(&mut self.record, last.snapshot.revision()) {
            self.is_failed = true;
            return Err(error);
        }
        if self.record.len() > RECORD_BYTES_KEPT {
            self.record = Record::default();
        }
        commits.iter().flat_map(|commit| &commit.events).for_each(|event| self.count(event));
        self.compact(&last.snapshot);
        Ok(())
    }

    fn count(&mut self, event: &Event) {
        let bytes = |entry| change_bytes(&event.key, entry);
        self.live_bytes += event.entry.as_ref().map_or(0, bytes);
        self.live_bytes = self.live_bytes.saturating_sub(event.previous.as_ref().map_or(0, bytes));
    }

    fn allowance(&self) -> u64 {
        self.place.worth_bytes().max(self.live_bytes * GROWTH_MAX)
    }

    /// Begins to write the log anew when it is time, and puts the new one in its place once it is done.
    fn compact(&mut self, present: &Snapshot) {
        match self.compaction.take() {
            None if self.log.end() > self.compact_at => self.begin(present),
            Some(running) if running.is_done() => self.replace(running),
            other => self.compaction = other,
        }
    }

    fn begin(&mut self, present: &Snapshot) {
        match Compaction::start(&self.place, present.clone(), self.log.end()) {
            Ok(running) => self.compaction = Some(running),
            Err(error) => self.put_off(&error),
        }
    }

    fn replace(&mut self, running: Compaction) {
        match running.finish(&self.log).and_then(|log| self.place.install().map(|()| log)) {
            Ok(log) => {
                self.log = log;
                self.is_settled = false;
                self.compact_at = self.allowance();
            }
            Err(error) => self.put_off(&error),
        }
    }

    /// The log goes on as it is, and it is tried again when it is half as long again.
    fn put_off(&mut self, error: &io::Error) {
        tracing::warn!(path = %self.place.path().display(), %error, "the store could not be written anew without its past");
        self.place.discard();
        self.compact_at = self.log.end() + self.log.end() / 2;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(running) = self.compaction.take() {
            running.abandon();
            self.place.discard();
        }
        // What was refused must not be found by the next start.
        let cleared = if self.is_failed { self.log.clear_tail() } else { Ok(()) };
        if let Err(error) = cleared.and_then(|()| self.log.seal()) {
            tracing::warn!(path = %self.place.path().display(), %error, "the store could not be sealed");
        }
    }
}

/// A new log, complete before it is in its place.
fn make(place: &dyn Place) -> Result<Box<dyn Medium>, OpenError> {
    let failed = |error| OpenError::of(place.path(), error);
    let medium = place.begin()?;
    // Another process may have been quicker.
    if let Some(found) = place.open()? {
        return Ok(found);
    }
    let made = Log::create(medium).and_then(|log| log.seal().map(|()| log));
    let log = made.and_then(|log| place.install().map(|()| log)).map_err(|error| {
        place.discard();
        failed(error)
    })?;
    place.settle().map_err(failed)?;
    Ok(log.into_medium())
}
