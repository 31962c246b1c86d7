//! Writing a log anew without its past, beside the one that goes on.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::{
    OpenError, Snapshot,
    log::{Log, Place, Record},
};

/// How long a record of the new log is, about.
const RECORD_BYTES: usize = 1 << 20;

/// A log that is being written from a state that does not change any more.
#[derive(Debug)]
pub(crate) struct Compaction {
    thread: JoinHandle<io::Result<Log>>,
    /// Where the old log was when the state was taken: what follows is copied at the end.
    from: u64,
    is_abandoned: Arc<AtomicBool>,
}

impl Compaction {
    pub(crate) fn start(place: &Arc<dyn Place>, state: Snapshot, from: u64) -> io::Result<Self> {
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let (place, abandoned) = (Arc::clone(place), Arc::clone(&is_abandoned));
        let write = move || write(&*place, &state, &abandoned);
        let thread = thread::Builder::new().name("store-compaction".into()).spawn(write)?;
        // Tests take the same steps each time.
        while cfg!(test) && !thread.is_finished() {
            thread::yield_now();
        }
        Ok(Self { thread, from, is_abandoned })
    }

    /// Whether the state is written.
    pub(crate) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// The new log with everything that `old` got meanwhile.
    pub(crate) fn finish(self, old: &Log) -> io::Result<Log> {
        let mut log = self.thread.join().map_err(|_| io::Error::other("it panicked"))??;
        log.copy_from(old, self.from)?;
        log.seal()?;
        Ok(log)
    }

    /// Lets it end without a result.
    pub(crate) fn abandon(self) {
        self.is_abandoned.store(true, Ordering::Release);
        if self.thread.join().is_err() {
            tracing::error!("writing the store anew panicked");
        }
    }
}

fn write(place: &dyn Place, state: &Snapshot, is_abandoned: &AtomicBool) -> io::Result<Log> {
    let medium = place.begin().map_err(OpenError::into_io)?;
    let (mut log, mut record) = (Log::create(medium)?, Record::default());
    for (key, entry) in state.range("", None) {
        record.add(key, Some(entry));
        if record.len() >= RECORD_BYTES {
            log.write(&mut record, state.revision())?;
            record.clear();
            if is_abandoned.load(Ordering::Acquire) {
                return Err(io::Error::other("the store is being closed"));
            }
        }
    }
    // Also without any entry left: a record carries the revision.
    log.write(&mut record, state.revision())?;
    log.seal()?;
    Ok(log)
}
