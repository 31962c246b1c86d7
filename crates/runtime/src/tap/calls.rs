//! The last calls that were made, for whoever asks why.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

use super::call::Call;

/// How many calls are remembered.
pub const JOURNAL_MAX: usize = 1024;

/// A call and how it ended. It never holds contents, so no secret can be in it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When the call was made.
    pub at: Timestamp,
    /// What was asked.
    pub call: Call,
    /// The HTTP status; `None` if there was no answer.
    pub code: Option<u16>,
    /// Until the answer's head.
    pub took: Duration,
}

/// A bounded record of calls.
#[derive(Debug, Default)]
pub struct Journal(Mutex<VecDeque<Entry>>);

impl Journal {
    pub(crate) fn record(&self, entry: Entry) {
        let mut entries = self.0.lock().expect("no code that can panic runs under this lock");
        if entries.len() == JOURNAL_MAX {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// What is remembered, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.lock().expect("no code that can panic runs under this lock").iter().cloned().collect()
    }

    /// The writes among them.
    pub fn writes(&self) -> Vec<Entry> {
        self.entries().into_iter().filter(|entry| entry.call.is_write()).collect()
    }
}
