//! Contents that nobody reads without the key, and nobody changes unseen.
//!
//! A content is a header and chunks of 64 KiB, each under AES-256-GCM. The header has the version, which key it was, and a random
//! salt; from the key, the salt and the path of the file comes the key of this content alone. So no nonce is ever used twice, and a
//! content counts under its own path only. The number of a chunk, and whether it is the last one, are in its nonce: chunks that
//! change places, are left out or are cut off at the end are seen.

use std::io::{self, Read};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};

use super::keyring::{Key, KeyId, KeyRing};
use super::{StorageError, fill};

/// What an encrypted content begins with; the last byte is the version.
const MAGIC: [u8; 9] = *b"windlass\x01";
const SALT_BYTES: usize = 32;
const ID_BYTES: usize = size_of::<KeyId>();
const HEADER_BYTES: usize = MAGIC.len() + ID_BYTES + SALT_BYTES;
const CHUNK_BYTES: usize = 64 << 10;
const TAG_BYTES: usize = 16;

/// The key of one content.
fn content_key(key: &Key, header: &[u8], path: &str) -> LessSafeKey {
    let salt = Salt::new(HKDF_SHA256, &header[MAGIC.len() + ID_BYTES..]);
    let info = [&header[..MAGIC.len() + ID_BYTES], path.as_bytes()];
    let derived = salt.extract(key.bytes());
    let okm = derived.expand(&info, &AES_256_GCM).expect("the length is that of a key");
    LessSafeKey::new(UnboundKey::from(okm))
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[3..11].copy_from_slice(&number.to_be_bytes());
    bytes[11] = is_last.into();
    Nonce::assume_unique_for_key(bytes)
}

/// Chunks of a content, each with whether it is the last one.
struct Chunks<R> {
    content: R,
    size: usize,
    /// What comes next, which tells whether the one before it is the last.
    ahead: Option<Vec<u8>>,
}

impl<R: Read> Chunks<R> {
    fn of(content: R, size: usize) -> Self {
        Self { content, size, ahead: None }
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; self.size];
        let length = fill(&mut self.content, &mut chunk)?;
        chunk.truncate(length);
        Ok(chunk)
    }

    fn next(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let chunk = match self.ahead.take() {
            Some(chunk) => chunk,
            None => self.read()?,
        };
        if chunk.len() < self.size {
            return Ok((chunk, true));
        }
        let ahead = self.read()?;
        let is_last = ahead.is_empty();
        self.ahead = Some(ahead);
        Ok((chunk, is_last))
    }
}

/// What is changed chunk by chunk on its way.
struct Converted<R> {
    chunks: Chunks<R>,
    key: LessSafeKey,
    number: u64,
    is_over: bool,
    ready: io::Cursor<Vec<u8>>,
}

impl<R: Read> Converted<R> {
    fn new(chunks: Chunks<R>, key: LessSafeKey, begin: Vec<u8>) -> Self {
        Self { chunks, key, number: 0, is_over: false, ready: io::Cursor::new(begin) }
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        convert: impl Fn(&LessSafeKey, Nonce, Vec<u8>) -> io::Result<Vec<u8>>,
    ) -> io::Result<usize> {
        loop {
            let length = self.ready.read(buffer)?;
            if length > 0 || self.is_over || buffer.is_empty() {
                return Ok(length);
            }
            let (chunk, is_last) = self.chunks.next()?;
            self.ready = io::Cursor::new(convert(&self.key, nonce(self.number, is_last), chunk)?);
            (self.number, self.is_over) = (self.number + 1, is_last);
        }
    }
}

/// A content that is encrypted as it is read.
pub(super) struct Encrypting<R>(Converted<R>);

impl<R: Read> Encrypting<R> {
    /// Encrypts what will be at `path` with the newest key.
    pub(super) fn new(keys: &KeyRing, path: &str, content: R) -> Self {
        let key = keys.newest();
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).expect("the system has random numbers");
        let header = [&MAGIC[..], &key.id()[..], &salt[..]].concat();
        let key = content_key(key, &header, path);
        Self(Converted::new(Chunks::of(content, CHUNK_BYTES), key, header))
    }
}

impl<R: Read> Read for Encrypting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer, |key, nonce, mut chunk| {
            let sealed = key.seal_in_place_append_tag(nonce, Aad::empty(), &mut chunk);
            sealed.map(|()| chunk).map_err(|_| io::Error::other("a chunk cannot be encrypted"))
        })
    }
}

/// A content that is decrypted as it is read: what was changed or cut off ends it with an error.
pub(super) struct Decrypting<R> {
    converted: Converted<R>,
    path: String,
}

impl<R: Read> Decrypting<R> {
    /// Decrypts what is at `path`.
    pub(super) fn new(keys: &KeyRing, path: &str, mut content: R) -> Result<Self, StorageError> {
        let mut header = [0; HEADER_BYTES];
        let unreadable = |error| {
            StorageError::within(error).unwrap_or_else(|source| StorageError::Disk { path: path.to_owned(), source })
        };
        let length = fill(&mut content, &mut header).map_err(unreadable)?;
        if length < HEADER_BYTES || header[..MAGIC.len() - 1] != MAGIC[..MAGIC.len() - 1] {
            return Err(StorageError::Plain(path.to_owned()));
        }
        if header[MAGIC.len() - 1] != MAGIC[MAGIC.len() - 1] {
            return Err(StorageError::Damaged(path.to_owned(), "a newer operator encrypted it"));
        }
        let id: KeyId = header[MAGIC.len()..MAGIC.len() + ID_BYTES].try_into().expect("it is as long");
        let key = keys.find(id).ok_or_else(|| keys.lacks(path, id))?;
        let key = content_key(key, &header, path);
        let chunks = Chunks::of(content, CHUNK_BYTES + TAG_BYTES);
        Ok(Self { converted: Converted::new(chunks, key, Vec::new()), path: path.to_owned() })
    }
}

impl<R: Read> Read for Decrypting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let path = &self.path;
        self.converted.read(buffer, |key, nonce, mut chunk| {
            let length = key.open_in_place(nonce, Aad::empty(), &mut chunk).map(|plain| plain.len());
            let damaged = |_| {
                io::Error::other(StorageError::Damaged(path.clone(), "it was changed, cut off, or stored elsewhere"))
            };
            chunk.truncate(length.map_err(damaged)?);
            Ok(chunk)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(keys: &[u8]) -> KeyRing {
        KeyRing::new(keys.iter().map(|key| Key::new([*key; 32])).collect()).unwrap()
    }

    fn encrypted(keys: &KeyRing, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Encrypting::new(keys, "a/b", content).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn decrypted(keys: &KeyRing, path: &str, content: &[u8]) -> Result<Vec<u8>, StorageError> {
        let mut bytes = Vec::new();
        let read = Decrypting::new(keys, path, content)?.read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| StorageError::within(error).unwrap())
    }

    #[test]
    fn contents_of_every_length_come_back_and_never_look_alike() {
        let keys = ring(&[1]);
        for length in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
            let content: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
            let (one, other) = (encrypted(&keys, &content), encrypted(&keys, &content));
            assert_eq!(decrypted(&keys, "a/b", &one).unwrap(), content, "{length}");
            assert_ne!(one, other);
        }
    }

    #[test]
    fn every_change_is_seen() {
        let keys = ring(&[1]);
        let whole = encrypted(&keys, &vec![7; 2 * CHUNK_BYTES + 9]);
        let sealed = CHUNK_BYTES + TAG_BYTES;
        let cuts = [HEADER_BYTES, HEADER_BYTES + sealed, HEADER_BYTES + 2 * sealed, whole.len() - 1];
        for cut in cuts {
            let seen = decrypted(&keys, "a/b", &whole[..cut]).unwrap_err();
            assert!(matches!(seen, StorageError::Damaged(..)), "cut at {cut}: {seen}");
        }
        for place in [MAGIC.len() + ID_BYTES, HEADER_BYTES, HEADER_BYTES + sealed + 5, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            let seen = decrypted(&keys, "a/b", &changed).unwrap_err();
            assert!(matches!(seen, StorageError::Damaged(..)), "changed at {place}: {seen}");
        }
        let (header, chunks) = whole.split_at(HEADER_BYTES);
        let swapped = [header, &chunks[sealed..2 * sealed], &chunks[..sealed], &chunks[2 * sealed..]].concat();
        assert!(matches!(decrypted(&keys, "a/b", &swapped), Err(StorageError::Damaged(..))));
        assert!(matches!(decrypted(&keys, "a/b", &[&whole[..], b"x"].concat()), Err(StorageError::Damaged(..))));
        assert!(matches!(decrypted(&keys, "a/c", &whole), Err(StorageError::Damaged(..))), "it is another file's");
    }

    #[test]
    fn keys_are_changed_one_after_the_other() {
        let (old, both, new) = (ring(&[1]), ring(&[1, 2]), ring(&[2]));
        let (first, second) = (encrypted(&old, b"first"), encrypted(&both, b"second"));
        assert_eq!(decrypted(&both, "a/b", &first).unwrap(), b"first");
        assert_eq!(decrypted(&new, "a/b", &second).unwrap(), b"second", "the newest key is used");
        let lack = decrypted(&new, "a/b", &first).unwrap_err().to_string();
        let named = |keys: &KeyRing| super::super::keyring::shown(keys.newest().id());
        assert!(lack.contains(&named(&old)) && lack.contains(&named(&new)), "both are named: {lack}");
        assert!(matches!(decrypted(&old, "a/b", b"plain"), Err(StorageError::Plain(_))));
    }
}
