//! What a log is on: bytes that can be synced, and the place where they are found again.

use std::{fmt::Debug, io, path::Path};

use crate::OpenError;

/// A log that is shorter is not worth writing anew.
const WORTH_BYTES: u64 = 16 << 20;

/// Bytes that are written anywhere and kept once they are synced.
pub(crate) trait Medium: Debug + Send {
    /// How many there are.
    fn len(&self) -> io::Result<u64>;
    /// Fills `out` with those from `offset` on.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes those from `offset` on; there may be more of them then.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Returns once everything written outlives a crash.
    fn sync(&self) -> io::Result<()>;
}

/// Where a log is, and beside it the one that is to replace it.
pub(crate) trait Place: Send + Sync {
    /// The name of the log in errors.
    fn path(&self) -> &Path;
    /// The log; `None` if there is none yet.
    fn open(&self) -> Result<Option<Box<dyn Medium>>, OpenError>;
    /// An empty medium beside the log.
    fn begin(&self) -> Result<Box<dyn Medium>, OpenError>;
    /// Puts the medium beside the log in the log's place, in one step.
    fn install(&self) -> io::Result<()>;
    /// Returns once what was installed outlives a crash.
    fn settle(&self) -> io::Result<()>;
    /// Removes the medium beside the log.
    fn discard(&self);
    /// How long a log must be to be worth writing anew.
    fn worth_bytes(&self) -> u64 {
        WORTH_BYTES
    }
}
