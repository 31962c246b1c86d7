//! The log: a file of records, one for each batch of commits, that is only appended to.
//!
//! ```text
//! seal (512 bytes) | record | record | … | zeros that are reserved
//! ```
//!
//! A batch is acknowledged after one sync of one record, and the next record is written only then. So a crash can cut
//! off the last record and no other: whatever else does not fit is damage and is said, not skipped. The seal tells how
//! much was there for certain when it was written: at a clean end all of it, otherwise what was there a megabyte ago.

mod content;
mod file;
mod medium;
mod record;
mod seal;
#[cfg(test)]
mod tests;

use std::io;

pub(crate) use content::{Content, Damage};
pub(crate) use file::FilePlace;
pub(crate) use medium::{Medium, Place};
pub(crate) use record::{Record, change_bytes};

use crate::Revision;
use seal::{SEAL_BYTES, Seal};

/// How much is filled with zeros ahead of the records: a sync of bytes that are there already need not touch the file
/// system's journal.
const RESERVE_BYTES: u64 = 1 << 20;
/// How much is copied or cleared at once.
const PIECE_BYTES: usize = 1 << 20;

/// An open log.
#[derive(Debug)]
pub(crate) struct Log {
    medium: Box<dyn Medium>,
    /// Where the next record goes; all before it is synced.
    end: u64,
    /// The revision of the last record.
    revision: Revision,
    /// Up to where there are bytes to write over.
    reserved: u64,
}

impl Log {
    /// A log without records on an empty medium. It is complete once it is synced.
    pub(crate) fn create(medium: Box<dyn Medium>) -> io::Result<Self> {
        medium.write(0, &Seal { end: SEAL_BYTES, revision: Revision::FIRST }.to_bytes())?;
        Ok(Self { medium, end: SEAL_BYTES, revision: Revision::FIRST, reserved: SEAL_BYTES })
    }

    /// The log on `medium`, and what it holds.
    pub(crate) fn open(medium: Box<dyn Medium>) -> Result<(Self, Content), Damage> {
        let content = Content::read(&*medium)?;
        let mut log = Self { end: content.end, revision: content.snapshot.revision(), reserved: medium.len()?, medium };
        if content.is_cut {
            tracing::warn!(
                "the last write before the end was cut off; nobody was told that it is there, and it is not"
            );
            log.clear_tail()?;
        }
        Ok((log, content))
    }

    /// The medium, to be opened again.
    pub(crate) fn into_medium(self) -> Box<dyn Medium> {
        self.medium
    }

    /// Where it ends, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends a record and syncs it. After an error the tail must be cleared before the next one.
    pub(crate) fn append(&mut self, record: &mut Record, revision: Revision) -> io::Result<()> {
        let bytes = record.finish(revision);
        let length = bytes.len() as u64;
        self.reserve(self.end + length)?;
        self.medium.write(self.end, bytes)?;
        self.medium.sync()?;
        self.end += length;
        self.revision = revision;
        Ok(())
    }

    /// Writes a record of a log that nobody relies on yet; it is there after the next sync.
    pub(crate) fn write(&mut self, record: &mut Record, revision: Revision) -> io::Result<()> {
        let bytes = record.finish(revision);
        self.medium.write(self.end, bytes)?;
        self.grew(bytes.len() as u64);
        self.revision = revision;
        Ok(())
    }

    /// Adds the records that `other` has from `start` on.
    pub(crate) fn copy_from(&mut self, other: &Self, mut start: u64) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        while start < other.end {
            let length = usize::try_from(other.end - start).map_or(PIECE_BYTES, |rest| rest.min(PIECE_BYTES));
            other.medium.read(start, &mut piece[..length])?;
            self.medium.write(self.end, &piece[..length])?;
            self.grew(length as u64);
            start += length as u64;
        }
        self.revision = other.revision;
        Ok(())
    }

    /// Notes that everything up to the end is there, and syncs.
    pub(crate) fn seal(&self) -> io::Result<()> {
        self.medium.write(0, &Seal { end: self.end, revision: self.revision }.to_bytes())?;
        self.medium.sync()
    }

    /// Makes what may stand after the end zeros, so that a record that failed is not found later.
    pub(crate) fn clear_tail(&mut self) -> io::Result<()> {
        let (zeros, length) = (vec![0; PIECE_BYTES], self.medium.len()?);
        let mut offset = self.end;
        while offset < length {
            let piece = usize::try_from(length - offset).map_or(PIECE_BYTES, |rest| rest.min(PIECE_BYTES));
            self.medium.write(offset, &zeros[..piece])?;
            offset += piece as u64;
        }
        self.reserved = length.max(self.end);
        self.medium.sync()
    }

    /// Sees to it that there are bytes up to `end`; the seal moves along with them, in the same sync as the record.
    fn reserve(&mut self, end: u64) -> io::Result<()> {
        if end <= self.reserved {
            return Ok(());
        }
        let wanted = end.next_multiple_of(RESERVE_BYTES);
        let zeros = vec![0; PIECE_BYTES];
        while self.reserved < wanted {
            let piece = usize::try_from(wanted - self.reserved).map_or(PIECE_BYTES, |rest| rest.min(PIECE_BYTES));
            self.medium.write(self.reserved, &zeros[..piece])?;
            self.reserved += piece as u64;
        }
        self.medium.write(0, &Seal { end: self.end, revision: self.revision }.to_bytes())
    }

    fn grew(&mut self, bytes: u64) {
        self.end += bytes;
        self.reserved = self.reserved.max(self.end);
    }
}
