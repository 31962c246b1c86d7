//! What clients did, when, and what they were told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// One state of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its revision.
    pub revision: u64,
    /// What it holds.
    pub value: String,
}

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Makes an object hold a value that no other write has; with the revision that it must have.
    Write {
        /// The object.
        key: String,
        /// What it is to hold; `None` deletes it.
        value: Option<String>,
        /// What it must be at; `None` for an object that must not be there.
        expected: Option<u64>,
    },
    /// Reads one object.
    Get {
        /// The object.
        key: String,
    },
    /// Reads all of them.
    List,
}

/// What a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The write is there, as this version.
    Written(Version),
    /// The object is gone. An answer does not tell at which revision.
    Deleted,
    /// The object is not as expected: nothing was done.
    Refused,
    /// What one object is; `None` if it is not there.
    Found(Option<Version>),
    /// What all of them are, and the revision of that.
    Listed(u64, BTreeMap<String, Version>),
    /// Nothing, or nothing that says whether it was done.
    Unknown,
}

/// What one client did once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// When it was begun, counted in beginnings and answers of all clients.
    pub begun: u64,
    /// When it was answered.
    pub answered: u64,
    /// What it was.
    pub action: Action,
    /// What came of it.
    pub outcome: Outcome,
}

/// What all clients did.
#[derive(Debug, Default)]
pub struct History {
    clock: AtomicU64,
    operations: Mutex<Vec<Operation>>,
}

impl History {
    /// A history of what is known already.
    pub fn of(operations: Vec<Operation>) -> Self {
        Self { clock: AtomicU64::default(), operations: Mutex::new(operations) }
    }

    /// The time at which something begins; the clock of all clients.
    pub fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes what was begun at `begun` and is answered now.
    pub fn note(&self, begun: u64, action: Action, outcome: Outcome) {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        let answered = self.now();
        operations.push(Operation { begun, answered, action, outcome });
    }

    /// All operations, in the order of their answers.
    pub fn operations(&self) -> Vec<Operation> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
