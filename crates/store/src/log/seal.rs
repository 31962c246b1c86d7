//! The seal at the beginning of a log: what it is, and how much of it is there for certain.

use crate::Revision;

/// The seal is as long as what a disk writes as a whole, so that it is the old one or the new one.
pub(super) const SEAL_BYTES: u64 = 512;
/// What every log begins with; the number is that of the format.
const MAGIC: &[u8; 16] = b"windlass store 1";

/// How much of a log is there for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// Where it ends, at the least.
    pub(super) end: u64,
    /// The revision there.
    pub(super) revision: Revision,
}

impl Seal {
    pub(super) fn to_bytes(self) -> [u8; SEAL_BYTES as usize] {
        let mut bytes = [0; SEAL_BYTES as usize];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..24].copy_from_slice(&self.end.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.revision.0.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..32]);
        bytes[32..36].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The error says what is wrong.
    pub(super) fn parse(bytes: &[u8; SEAL_BYTES as usize]) -> Result<Self, &'static str> {
        if &bytes[..16] != MAGIC {
            return Err("it does not begin as a store does; it may be another program's file");
        }
        let number = |range: std::ops::Range<usize>| bytes[range].try_into().map_or(0, u64::from_le_bytes);
        let seal = Self { end: number(16..24), revision: Revision(number(24..32)) };
        if seal.to_bytes() == *bytes { Ok(seal) } else { Err("its first 512 bytes are damaged") }
    }
}
