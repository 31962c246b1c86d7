//! Reading a log: what it holds, where it ends, and whether the end is a crash or damage.

use std::io;

use super::{
    Medium,
    record::{ALIGNMENT, HEAD_BYTES, Head, change_bytes, replay},
    seal::{SEAL_BYTES, Seal},
};
use crate::{Revision, Snapshot, snapshot::Index};

/// How much is read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("{0}")]
    Found(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a log holds.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) snapshot: Snapshot,
    /// Where its last whole record ends.
    pub(super) end: u64,
    /// Whether there is something after it: a record that was cut off.
    pub(super) is_cut: bool,
    /// How many bytes its entries would take without their past.
    pub(crate) live_bytes: u64,
}

impl Content {
    pub(super) fn read(medium: &dyn Medium) -> Result<Self, Damage> {
        let mut window = Window::new(medium)?;
        let seal = window.seal()?;
        let (mut index, mut revision, mut end) = (Index::new_sync(), Revision::FIRST, SEAL_BYTES);
        while let Some((head, changes)) = window.record(end)? {
            let damaged = || Damage::Found(format!("the record at byte {end} cannot be read"));
            replay(changes, &mut index).ok_or_else(damaged)?;
            revision = head.revision;
            end += head.record_bytes();
        }
        if end < seal.end || revision < seal.revision {
            return Err(Damage::Found(format!(
                "it is damaged at byte {end}; it had {} bytes, up to revision {}",
                seal.end, seal.revision
            )));
        }
        let is_cut = window.has_bytes_after(end)?;
        if let Some(later) = window.record_after(end)? {
            return Err(Damage::Found(format!("it is damaged at byte {end}; it goes on at byte {later}")));
        }
        let live_bytes = index.iter().map(|(key, entry)| change_bytes(key, entry)).sum();
        Ok(Self { snapshot: Snapshot { index, revision }, end, is_cut, live_bytes })
    }
}

/// The part of a medium that was read last.
struct Window<'a> {
    medium: &'a dyn Medium,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(medium: &'a dyn Medium) -> Result<Self, Damage> {
        Ok(Self { medium, length: medium.len()?, start: 0, bytes: Vec::new() })
    }

    fn seal(&mut self) -> Result<Seal, Damage> {
        let too_short = || Damage::Found("it is too short to be a store".into());
        let bytes = self.get(0, SEAL_BYTES as usize)?.ok_or_else(too_short)?;
        let bytes = bytes.try_into().map_err(|_| too_short())?;
        Seal::parse(bytes).map_err(|why| Damage::Found(why.into()))
    }

    /// The bytes from `offset` on; `None` if there are not so many.
    fn get(&mut self, offset: u64, length: usize) -> Result<Option<&[u8]>, Damage> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Ok(None);
        }
        if offset < self.start || offset + length as u64 > self.start + self.bytes.len() as u64 {
            let rest = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
            self.bytes.resize(length.max(WINDOW_BYTES).min(rest), 0);
            self.start = offset;
            self.medium.read(offset, &mut self.bytes)?;
        }
        let begin = usize::try_from(offset - self.start).expect("it is in the window");
        Ok(self.bytes.get(begin..begin + length))
    }

    /// The whole record at `offset`.
    fn record(&mut self, offset: u64) -> Result<Option<(Head, &[u8])>, Damage> {
        let Some(head) = self.get(offset, HEAD_BYTES)?.and_then(Head::parse) else { return Ok(None) };
        let Ok(length) = usize::try_from(head.record_bytes()) else { return Ok(None) };
        let body = self.get(offset + HEAD_BYTES as u64, length - HEAD_BYTES)?;
        let body = body.filter(|body| crc32fast::hash(body) == head.sum);
        Ok(body.map(|body| (head, &body[..head.length as usize])))
    }

    /// Whether anything but zeros follows.
    fn has_bytes_after(&mut self, mut offset: u64) -> Result<bool, Damage> {
        while offset < self.length {
            let piece = usize::try_from(self.length - offset).map_or(WINDOW_BYTES, |rest| rest.min(WINDOW_BYTES));
            if self.get(offset, piece)?.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
                return Ok(true);
            }
            offset += piece as u64;
        }
        Ok(false)
    }

    /// The beginning of a whole record after `offset`. A record is written after the one before is synced, so there is
    /// none after one that a crash cut off.
    fn record_after(&mut self, mut offset: u64) -> Result<Option<u64>, Damage> {
        loop {
            offset += ALIGNMENT as u64;
            let Some(mark) = self.get(offset, ALIGNMENT)? else { return Ok(None) };
            if mark.iter().any(|byte| *byte != 0) && self.record(offset)?.is_some() {
                return Ok(Some(offset));
            }
        }
    }
}
