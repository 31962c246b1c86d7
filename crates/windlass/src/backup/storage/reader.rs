//! An object, read piece by piece: each piece is a request of its own, which is tried again if it is cut off.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};

use super::StorageError;
use super::fault::Whereabouts;
use super::link::{Failure, Link};

/// How much is asked for at once.
const PIECE_BYTES: u64 = 8 << 20;

/// An object that is being read.
pub(super) struct ObjectReader {
    link: Arc<Link>,
    path: String,
    key: Path,
    /// What tells this object from another one of its name.
    tag: Option<String>,
    /// How long it is, and how much of that was asked for.
    length: u64,
    asked: u64,
    /// What was answered and not read yet.
    piece: Bytes,
}

impl ObjectReader {
    /// Opens an object; `None` if there is none.
    pub(super) fn open(link: Arc<Link>, path: &str) -> Result<Option<Self>, StorageError> {
        let (key, path) = (link.key(path)?, path.to_owned());
        let mut reader = Self { link, path, key, tag: None, length: PIECE_BYTES, asked: 0, piece: Bytes::new() };
        match reader.ask() {
            Ok(()) => Ok(Some(reader)),
            Err(Failure::Answer(error)) if Whereabouts::is_absence(&error) => Ok(None),
            // An empty one has no first piece.
            Err(Failure::Answer(error)) if is_beyond(&error) => {
                reader.length = 0;
                Ok(Some(reader))
            }
            Err(failure) => Err(reader.link.fault(&reader.path, &failure)),
        }
    }

    /// Asks for the next piece.
    fn ask(&mut self) -> Result<(), Failure> {
        let (store, range) = (self.link.store(), self.asked..self.length.min(self.asked + PIECE_BYTES));
        let key = self.key.clone();
        let options =
            GetOptions { range: Some(GetRange::Bounded(range)), if_match: self.tag.clone(), ..GetOptions::default() };
        let (piece, meta) = self.link.run(async move {
            let answer = store.get_opts(&key, options).await?;
            let meta = answer.meta.clone();
            Ok((answer.bytes().await?, meta))
        })?;
        (self.length, self.tag) = (meta.size, meta.e_tag);
        self.asked += piece.len() as u64;
        self.piece = piece;
        Ok(())
    }
}

/// Whether an answer says that there is nothing where something was asked for.
fn is_beyond(error: &object_store::Error) -> bool {
    let text = error.to_string();
    text.contains("InvalidRange") || text.contains(" 416 ")
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && self.asked < self.length {
            self.ask().map_err(|failure| io::Error::other(self.link.fault(&self.path, &failure)))?;
            if self.piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let length = buffer.len().min(self.piece.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
