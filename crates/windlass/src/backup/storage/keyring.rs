//! The keys that contents are encrypted with, from a Secret: the newest writes, all read.

use std::fs;
use std::path::Path;

use ring::digest::{SHA256, digest};

use super::StorageError;

/// What a key is known by: a part of a hash of it.
pub(super) type KeyId = [u8; 8];

/// More keys than this are refused: which of them is the newest must be sure.
const KEYS_MAX: usize = 100;
/// A key has 32 bytes, written as 64 hexadecimal digits.
const KEY_BYTES: usize = 32;

/// One key. It cannot be shown.
#[derive(Clone)]
pub(super) struct Key {
    bytes: [u8; KEY_BYTES],
    id: KeyId,
}

impl Key {
    pub(super) fn new(bytes: [u8; KEY_BYTES]) -> Self {
        let hash = digest(&SHA256, &[b"windlass key id:", &bytes[..]].concat());
        let id = hash.as_ref()[..size_of::<KeyId>()].try_into().expect("a hash is longer");
        Self { bytes, id }
    }

    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; KEY_BYTES];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Self::new(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn id(&self) -> KeyId {
        self.id
    }
}

/// The keys of a storage, the newest last.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<Key>,
}

impl KeyRing {
    pub(super) fn new(keys: Vec<Key>) -> Option<Self> {
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// Reads the keys of a Secret, as it is mounted: one in each entry, of which the last by name is the newest.
    ///
    /// # Errors
    /// When there is none, or one cannot be read.
    pub fn read(folder: &Path) -> Result<Self, StorageError> {
        let unreadable = |why: &dyn std::fmt::Display| {
            StorageError::Settings(format!("the Secret with the keys of encryption cannot be read: {why}"))
        };
        let entries = fs::read_dir(folder).map_err(|error| unreadable(&error))?;
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        // Those that begin with a dot are how a Secret is mounted.
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).take(KEYS_MAX + 1).collect();
        if names.len() > KEYS_MAX {
            return Err(unreadable(&format!("it has more than {KEYS_MAX} keys: take away those that nothing needs")));
        }
        names.sort();
        let key = |name: &String| {
            let text = fs::read_to_string(folder.join(name)).map_err(|error| unreadable(&error))?;
            let odd =
                || unreadable(&format!("{name} is not a key: 64 hexadecimal digits, as of `openssl rand -hex 32`"));
            Key::read(&text).ok_or_else(odd)
        };
        let keys = names.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        Self::new(keys).ok_or_else(|| unreadable(&"it has no key"))
    }

    pub(super) fn newest(&self) -> &Key {
        self.keys.last().expect("there is one")
    }

    pub(super) fn find(&self, id: KeyId) -> Option<&Key> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// The error of a content whose key is not among these.
    pub(super) fn lacks(&self, path: &str, id: KeyId) -> StorageError {
        let there = self.keys.iter().map(|key| shown(key.id)).collect::<Vec<_>>().join(", ");
        StorageError::NoKey { path: path.to_owned(), key: shown(id), there }
    }
}

/// What a key is known by, for people.
pub(super) fn shown(id: KeyId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_by_name_is_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert!(KeyRing::read(folder.path()).is_err());
        write("2026-02-01", &format!("{}\n", "Bb".repeat(32)));
        write("2026-01-01", &"aa".repeat(32));
        write("..data", "not a key");
        let ring = KeyRing::read(folder.path()).ok().unwrap();
        assert_eq!((ring.keys.len(), ring.newest().bytes[0]), (2, 0xbb));
        write("2026-03-01", "canary");
        let odd = KeyRing::read(folder.path()).err().unwrap().to_string();
        assert!(odd.contains("2026-03-01") && !odd.contains("canary"), "{odd}");
        (0..KEYS_MAX).for_each(|number| write(&format!("2027-{number}"), &"cc".repeat(32)));
        let many = KeyRing::read(folder.path()).err().unwrap().to_string();
        assert!(many.contains("more than 100 keys"), "{many}");
    }
}
