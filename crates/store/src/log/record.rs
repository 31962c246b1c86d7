//! A record: the changes of a batch of commits, with sums that tell whether it is whole.

use bytes::Bytes;

use crate::{Entry, Revision, snapshot::Index};

/// What precedes the changes.
pub(super) const HEAD_BYTES: usize = 24;
/// Records begin at multiples of this.
pub(super) const ALIGNMENT: usize = 8;
/// A head begins with this, so that none looks like reserved zeros.
const MARK: u32 = 0x6472_6f77;
/// What precedes key and value of a change.
const CHANGE_BYTES: usize = 24;
/// The length of the value of a key that is removed.
const REMOVED: u32 = u32::MAX;

/// A record that is being made; it is used again for the next one.
#[derive(Debug)]
pub(crate) struct Record(Vec<u8>);

impl Default for Record {
    fn default() -> Self {
        Self(vec![0; HEAD_BYTES])
    }
}

impl Record {
    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.0.truncate(HEAD_BYTES);
    }

    /// How many bytes it has so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds that `key` holds `entry`, or nothing.
    pub(crate) fn add(&mut self, key: &str, entry: Option<&Entry>) {
        let (created, modified) = entry.map_or((0, 0), |entry| (entry.created.0, entry.modified.0));
        let length = |bytes: usize| u32::try_from(bytes).expect("keys and values are far smaller than 4 GiB");
        self.0.extend_from_slice(&created.to_le_bytes());
        self.0.extend_from_slice(&modified.to_le_bytes());
        self.0.extend_from_slice(&length(key.len()).to_le_bytes());
        self.0.extend_from_slice(&entry.map_or(REMOVED, |entry| length(entry.value.len())).to_le_bytes());
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(entry.map_or(&[], |entry| &entry.value));
    }

    /// The bytes of the whole record, up to the beginning of the next one.
    pub(super) fn finish(&mut self, revision: Revision) -> &[u8] {
        let length = u32::try_from(self.0.len() - HEAD_BYTES).expect("batches are limited");
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        let head = Head { length, revision, sum: crc32fast::hash(&self.0[HEAD_BYTES..]) };
        self.0[..HEAD_BYTES].copy_from_slice(&head.to_bytes());
        &self.0
    }
}

/// How many bytes of a log a key and its entry take.
pub(crate) fn change_bytes(key: &str, entry: &Entry) -> u64 {
    (CHANGE_BYTES + key.len() + entry.value.len()) as u64
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// How many bytes its changes have.
    pub(super) length: u32,
    /// The last revision in it.
    pub(super) revision: Revision,
    /// The sum of its changes and of the zeros after them.
    pub(super) sum: u32,
}

impl Head {
    /// How long the whole record is, up to the beginning of the next one.
    pub(super) fn record_bytes(self) -> u64 {
        (HEAD_BYTES as u64 + u64::from(self.length)).next_multiple_of(ALIGNMENT as u64)
    }

    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&MARK.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.revision.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sum.to_le_bytes());
        let own = crc32fast::hash(&bytes[..20]);
        bytes[20..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The head that `bytes` are; `None` if they are no whole one.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head = Self {
            length: u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?),
            revision: Revision(u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?)),
            sum: u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?),
        };
        (head.to_bytes() == bytes[..HEAD_BYTES]).then_some(head)
    }
}

/// Makes the changes of a record in `index`; `None` if they cannot be read.
pub(super) fn replay(mut changes: &[u8], index: &mut Index) -> Option<()> {
    while !changes.is_empty() {
        let (head, rest) = changes.split_at_checked(CHANGE_BYTES)?;
        let long = |start: usize| Some(u64::from_le_bytes(head.get(start..start + 8)?.try_into().ok()?));
        let short = |start: usize| Some(u32::from_le_bytes(head.get(start..start + 4)?.try_into().ok()?));
        let (key, rest) = rest.split_at_checked(short(16)? as usize)?;
        let key = std::str::from_utf8(key).ok()?;
        let value_length = short(20)?;
        if value_length == REMOVED {
            index.remove_mut(key);
            changes = rest;
            continue;
        }
        let (value, rest) = rest.split_at_checked(value_length as usize)?;
        let entry =
            Entry { created: Revision(long(0)?), modified: Revision(long(8)?), value: Bytes::copy_from_slice(value) };
        index.insert_mut(key.into(), entry);
        changes = rest;
    }
    Some(())
}
