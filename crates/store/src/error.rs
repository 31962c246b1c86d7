//! Why a store cannot be opened, written or watched.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::Revision;

/// Why a store on disk cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a store, or is damaged.
    #[error("{} is not a readable store: {reason}", path.display())]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file or its folder may not be read or written.
    #[error("no permission to open {}", path.display())]
    Permission {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left on the disk for {}", path.display())]
    NoSpace {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system failed otherwise.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl OpenError {
    /// What `source` means for the store at `path`.
    pub(crate) fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Permission { path, source },
            _ if is_full(&source) => Self::NoSpace { path, source },
            _ => Self::Io { path, source },
        }
    }

    /// What the system said, if it did.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Permission { source, .. } | Self::NoSpace { source, .. } | Self::Io { source, .. } => source,
            Self::InUse { .. } | Self::Corrupt { .. } => io::Error::other(self),
        }
    }
}

/// Why nothing of a commit was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// A key is not as the write expected it.
    #[error("{key} is at {}", actual.map_or_else(|| "no revision".to_owned(), |revision| format!("revision {revision}")))]
    Precondition {
        /// The key.
        key: String,
        /// The commit that last modified it; `None` if it is not there.
        actual: Option<Revision>,
    },
    /// The disk refused the commit. Nothing of it is there, in memory or on the disk.
    #[error("the disk refused the write: {0}")]
    Disk(Arc<io::Error>),
    /// The store was closed while the commit waited.
    #[error("the store is closed")]
    Closed,
    /// Others wrote all the time, so that a state could not be restored.
    #[error("the store is written to without a pause; stop the writers first")]
    Busy,
}

impl CommitError {
    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Disk(error) if is_full(error))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The past that was asked for is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revisions before {oldest} are compacted")]
pub struct Compacted {
    /// The oldest revision that is still kept.
    pub oldest: Revision,
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher took events too slowly; it must list again.
    #[error("the watcher fell too far behind")]
    Lagged,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}
