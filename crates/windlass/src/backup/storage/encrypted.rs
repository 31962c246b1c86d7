//! Storage whose contents are encrypted before they get there.

use std::io::Read;
use std::path::PathBuf;

use super::catalogue::is_record;
use super::cipher::{Decrypting, Encrypting};
use super::keyring::KeyRing;
use super::{Listing, Put, Storage, StorageError, checked, is_same};

/// Another storage, and the keys of what is in it. Names are as they are, and so are the records of backups: what there is can be
/// seen without a key, what is in it cannot.
pub struct Encrypted {
    storage: Box<dyn Storage>,
    keys: KeyRing,
}

impl Encrypted {
    /// Encrypts what goes to `storage`.
    pub fn new(storage: Box<dyn Storage>, keys: KeyRing) -> Self {
        Self { storage, keys }
    }
}

impl Storage for Encrypted {
    fn put(&self, path: &str, content: &mut dyn Read) -> Result<Put, StorageError> {
        if is_record(path) {
            return self.storage.put(path, content);
        }
        // The same content looks otherwise every time it is encrypted.
        let same = match self.open(path) {
            Ok(None) => return self.storage.put(path, &mut Encrypting::new(&self.keys, path, content)),
            Ok(Some(mut there)) => is_same(&mut there, content),
            // It was brought before encryption was asked for: to compare it, nobody has to trust it.
            Err(StorageError::Plain(_)) => match self.storage.open(path)? {
                Some(mut there) => is_same(&mut there, content),
                None => Ok(false),
            },
            Err(error) => return Err(error),
        };
        match same {
            Ok(true) => Ok(Put::Identical),
            Ok(false) => Err(StorageError::Different(path.to_owned())),
            Err(error) => Err(StorageError::within(error)
                .unwrap_or_else(|source| StorageError::Content { path: path.to_owned(), source })),
        }
    }

    fn open(&self, path: &str) -> Result<Option<Box<dyn Read + Send>>, StorageError> {
        let there = self.storage.open(path)?;
        if is_record(path) {
            return Ok(there);
        }
        match there {
            Some(there) => Ok(Some(Box::new(Decrypting::new(&self.keys, path, there)?))),
            None => Ok(None),
        }
    }

    fn list(&self, path: &str) -> Result<Listing, StorageError> {
        self.storage.list(path)
    }

    fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.storage.delete(path)
    }

    fn clear(&self, path: &str) -> Result<(), StorageError> {
        self.storage.clear(path)
    }

    fn place(&self, path: &str) -> Result<Option<PathBuf>, StorageError> {
        checked(path).map(|_| None) // What programs write themselves would not be encrypted.
    }

    fn settle(&self, _: &str) -> Result<(), StorageError> {
        Ok(()) // Everything was put.
    }
}
