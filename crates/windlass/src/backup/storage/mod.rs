//! Storage of backups: files that are whole or not there, that stay once they are written, and that nobody overwrites.
//!
//! [`Storage`] is what a place has to keep; a [`Folder`] and an [`ObjectStorage`] keep it, and either can be [`Encrypted`].
//! `catalogue` finds backups in all of them.
//! The calls block: whoever uses them works on files anyway.

mod attach;
mod catalogue;
mod cipher;
mod encrypted;
mod fault;
mod folder;
mod keyring;
mod keys;
mod link;
mod objects;
mod reader;
mod transport;

use std::io::{self, Read};
use std::path::PathBuf;

pub use attach::{Attachment, open};
pub use catalogue::{remove, seal, stored};
pub use encrypted::Encrypted;
pub use folder::Folder;
pub use keyring::KeyRing;
pub use keys::Keys;
pub use objects::ObjectStorage;

/// How much is compared at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A place in which files are kept under paths below its top.
pub trait Storage: Send + Sync {
    /// Writes a file that was not there. One that is there with the same content is fine: whoever wrote it may not have lived to
    /// hear of it. Until all of it is written, nobody sees it.
    ///
    /// # Errors
    /// When there is other content of that name, or the storage fails.
    fn put(&self, path: &str, content: &mut dyn Read) -> Result<Put, StorageError>;

    /// Opens a file; `None` if there is none. What fails later, while it is read, is an [`io::Error`] with a [`StorageError`] in it.
    ///
    /// # Errors
    /// When the storage fails.
    fn open(&self, path: &str) -> Result<Option<Box<dyn Read + Send>>, StorageError>;

    /// What is in a folder; nothing if there is none. The empty path is the top.
    ///
    /// # Errors
    /// When the storage fails.
    fn list(&self, path: &str) -> Result<Listing, StorageError>;

    /// Deletes a file; that it is not there is fine.
    ///
    /// # Errors
    /// When the storage fails.
    fn delete(&self, path: &str) -> Result<(), StorageError>;

    /// Deletes all that is below a path.
    ///
    /// # Errors
    /// When the storage fails.
    fn clear(&self, path: &str) -> Result<(), StorageError>;

    /// Where programs can write the files of this folder themselves; nowhere, if they have to be put.
    ///
    /// # Errors
    /// When the path leads out of the storage.
    fn place(&self, path: &str) -> Result<Option<PathBuf>, StorageError>;

    /// Sees to it that what programs wrote into a folder themselves stays after a power cut.
    ///
    /// # Errors
    /// When the storage fails.
    fn settle(&self, path: &str) -> Result<(), StorageError>;
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was written.
    Written,
    /// It was there, byte by byte.
    Identical,
}

/// What is in a folder, by name, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The folders in it.
    pub folders: Vec<String>,
    /// The files in it, without those that are being written.
    pub files: Vec<String>,
}

/// Why storage does not do what it is asked for. None of it shows a credential.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// There is something else of that name.
    #[error("{0} is there with other content, and is not overwritten: does another cluster write here?")]
    Different(String),
    /// A name that leads out of the storage.
    #[error("{0:?} is not a path below the top of the storage")]
    Path(String),
    /// The disk is full, or another answer of the system.
    #[error("storage: {path}: {source}")]
    Disk {
        /// What was worked on.
        path: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// What was to be stored cannot be read.
    #[error("what is to be stored as {path} cannot be read: {source}")]
    Content {
        /// What was to be written.
        path: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Something is not encrypted where everything should be.
    #[error(
        "{0} is not encrypted: it was stored before encryption was asked for, or by somebody else; a location without encryption reads it"
    )]
    Plain(String),
    /// Something encrypted is not as it was stored.
    #[error("{0} cannot be decrypted: {1}")]
    Damaged(String, &'static str),
    /// Something is encrypted with a key that is not there.
    #[error(
        "{path} needs the key {key} of encryption, and the Secret has {there}: put the old key back beside the new one"
    )]
    NoKey {
        /// What was read.
        path: String,
        /// What its key is known by.
        key: String,
        /// What those are known by that are there.
        there: String,
    },
    /// The settings cannot be used.
    #[error("the storage cannot be used: {0}")]
    Settings(String),
    /// The storage does not know who asks, or does not let them.
    #[error(
        "{endpoint} refuses {path} of bucket {bucket} ({code}): see that the Secret of the credentials is right and may read, write, list and delete there"
    )]
    Denied {
        /// The object storage.
        endpoint: String,
        /// The bucket.
        bucket: String,
        /// What was worked on.
        path: String,
        /// The storage's word for it.
        code: String,
    },
    /// There is no such bucket.
    #[error("there is no bucket {bucket} at {endpoint}: make it, or say another one")]
    NoBucket {
        /// The object storage.
        endpoint: String,
        /// The bucket.
        bucket: String,
    },
    /// The storage does not answer.
    #[error("{endpoint} cannot be reached: {why}")]
    Away {
        /// The object storage.
        endpoint: String,
        /// What was seen.
        why: String,
    },
    /// Another answer of an object storage.
    #[error("{endpoint}: {path} of bucket {bucket}: {answer}")]
    Remote {
        /// The object storage.
        endpoint: String,
        /// The bucket.
        bucket: String,
        /// What was worked on.
        path: String,
        /// What it said.
        answer: String,
    },
}

impl StorageError {
    /// The error of a storage that reading from it ended with, or else what the system said.
    ///
    /// # Errors
    /// The error itself, when it is not one of a storage.
    pub fn within(error: io::Error) -> Result<Self, io::Error> {
        error.downcast::<Self>()
    }
}

/// The path, if it leads nowhere but down.
fn checked(path: &str) -> Result<&str, StorageError> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    if path.split('/').all(is_plain) { Ok(path) } else { Err(StorageError::Path(path.into())) }
}

/// Whether two contents are the same, to their ends.
fn is_same(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let length = fill(one, &mut left)?;
        if fill(other, &mut right)? != length || left[..length] != right[..length] {
            return Ok(false);
        }
        if length < CHUNK_BYTES {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the content ends; gives how much that is.
fn fill(content: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match content.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_down_and_nowhere_else() {
        for path in ["../a", "/etc/passwd", "a/../../b", "", "a/./b", "a//b", "a/"] {
            assert!(matches!(checked(path), Err(StorageError::Path(_))), "{path}");
        }
        assert_eq!(checked("a/b-1.gz").unwrap(), "a/b-1.gz");
    }

    #[test]
    fn contents_are_compared_to_their_ends() {
        let long = vec![7; CHUNK_BYTES];
        let longer = vec![7; CHUNK_BYTES + 1];
        let rows: [(&[u8], &[u8], bool); 5] = [
            (b"", b"", true),
            (b"a", b"", false),
            (b"ab", b"ac", false),
            (&long, &long, true),
            (&long, &longer, false),
        ];
        for (one, other, expected) in rows {
            assert_eq!(is_same(&mut &*one, &mut &*other).unwrap(), expected, "{} {}", one.len(), other.len());
        }
    }
}
