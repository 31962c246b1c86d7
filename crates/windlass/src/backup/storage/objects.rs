//! Storage that is a bucket of an object storage, spoken to as S3 is.
//!
//! What fits into one request is one, under the condition that there is nothing of that name (`If-None-Match: *`): it is done wholly
//! or not at all. What is longer is uploaded in parts, of which nobody sees anything before the last word.

use std::collections::VecDeque;
use std::io::{Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::super::location::S3;
use super::fault::Whereabouts;
use super::keys::Keys;
use super::link::{Failure, Link, Pending};
use super::reader::ObjectReader;
use super::{Listing, Put, Storage, StorageError, checked, fill, is_same};

/// What is longer than this is uploaded in parts of this size. A file of a log is not longer.
const PART_BYTES: usize = 32 << 20;
/// S3 takes no more parts: an object has at most 312 GiB here.
const PARTS_MAX: usize = 10_000;
/// How many parts are on their way at once; so many, and the one that is read, are in memory.
const PARTS_AT_ONCE: usize = 2;

/// A bucket in which backups are.
#[derive(Clone, Debug)]
pub struct ObjectStorage {
    link: Arc<Link>,
}

impl ObjectStorage {
    /// The bucket with these settings. It is not asked yet whether it is there.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn new(settings: &S3, keys: &Keys) -> Result<Self, StorageError> {
        Ok(Self { link: Arc::new(Link::new(settings, keys)?) })
    }

    fn failed<T>(&self, path: &str, done: Result<T, Failure>) -> Result<T, StorageError> {
        done.map_err(|failure| self.link.fault(path, &failure))
    }

    /// Writes what is not longer than a part, unless there is something.
    fn put_whole(&self, path: &str, key: Path, content: Vec<u8>) -> Result<Put, StorageError> {
        let (store, payload) = (self.link.store(), PutPayload::from(content.clone()));
        let options = PutOptions::from(PutMode::Create);
        match self.link.run(async move { store.put_opts(&key, payload, options).await }) {
            Ok(_) => Ok(Put::Written),
            Err(Failure::Answer(object_store::Error::AlreadyExists { .. })) => {
                self.compare(path, &mut content.as_slice())?.ok_or_else(|| {
                    // Two wrote at once, and what was there is gone again.
                    self.link.whereabouts().refused(path, "it was written and deleted at once")
                })
            }
            Err(failure) => Err(self.link.fault(path, &failure)),
        }
    }

    /// Compares what is there with `content`; `None` if there is nothing.
    fn compare(&self, path: &str, content: &mut dyn Read) -> Result<Option<Put>, StorageError> {
        let Some(mut there) = self.open(path)? else { return Ok(None) };
        match is_same(&mut there, content) {
            Ok(true) => Ok(Some(Put::Identical)),
            Ok(false) => Err(StorageError::Different(path.to_owned())),
            Err(error) => Err(content_error(path, error)),
        }
    }

    /// Uploads `first` and what follows it. The last word has no condition in this library: whether there is something is asked
    /// before the first part and after the last one.
    fn put_parts(&self, path: &str, key: &Path, first: Vec<u8>, content: &mut dyn Read) -> Result<Put, StorageError> {
        if let Some(put) = self.compare(path, &mut Cursor::new(&first).chain(&mut *content))? {
            return Ok(put);
        }
        let (store, place) = (self.link.store(), key.clone());
        let begun = self.link.run(async move { store.put_multipart(&place).await });
        let mut upload = self.failed(path, begun)?;
        let sent = self.send(path, upload.as_mut(), first, content).and_then(|()| match self.open(path)? {
            Some(_) => Err(StorageError::Different(path.to_owned())),
            None => Ok(()),
        });
        if let Err(error) = sent {
            // What stays if this fails, too, nobody sees; the bucket's rules can remove it.
            let _ = self.link.run(async move { upload.abort().await });
            return Err(error);
        }
        let done = self.link.run(async move { upload.complete().await });
        self.failed(path, done).map(|_| Put::Written)
    }

    fn send(
        &self,
        path: &str,
        upload: &mut dyn MultipartUpload,
        first: Vec<u8>,
        content: &mut dyn Read,
    ) -> Result<(), StorageError> {
        let mut on_their_way: VecDeque<Pending<()>> = VecDeque::new();
        let (mut part, mut count) = (first, 0);
        while !part.is_empty() {
            count += 1;
            if count > PARTS_MAX {
                return Err(self.link.whereabouts().refused(path, "it is longer than 312 GiB"));
            }
            while on_their_way.len() >= PARTS_AT_ONCE {
                self.failed(path, on_their_way.pop_front().map_or(Ok(()), Pending::wait))?;
            }
            on_their_way.push_back(self.link.begin(upload.put_part(PutPayload::from(part))));
            part = next_part(path, content)?;
        }
        on_their_way.into_iter().try_for_each(|part| self.failed(path, part.wait()))
    }
}

impl Storage for ObjectStorage {
    fn put(&self, path: &str, content: &mut dyn Read) -> Result<Put, StorageError> {
        let key = self.link.key(path)?;
        let first = next_part(path, content)?;
        if first.len() < PART_BYTES {
            self.put_whole(path, key, first)
        } else {
            self.put_parts(path, &key, first, content)
        }
    }

    fn open(&self, path: &str) -> Result<Option<Box<dyn Read + Send>>, StorageError> {
        match ObjectReader::open(self.link.clone(), path)? {
            Some(reader) => Ok(Some(Box::new(reader))),
            None => Ok(None),
        }
    }

    fn list(&self, path: &str) -> Result<Listing, StorageError> {
        let folder = if path.is_empty() { self.link.top() } else { self.link.key(path)? };
        let store = self.link.store();
        let found = match self.link.run(async move { store.list_with_delimiter(Some(&folder)).await }) {
            Err(Failure::Answer(error)) if Whereabouts::is_absence(&error) => return Ok(Listing::default()),
            found => self.failed(path, found)?,
        };
        let name = |path: &Path| path.filename().map(str::to_owned);
        let mut listing = Listing {
            folders: found.common_prefixes.iter().filter_map(name).collect(),
            files: found.objects.iter().filter_map(|object| name(&object.location)).collect(),
        };
        listing.folders.sort();
        listing.files.sort();
        Ok(listing)
    }

    fn delete(&self, path: &str) -> Result<(), StorageError> {
        let (store, key) = (self.link.store(), self.link.key(path)?);
        match self.link.run(async move { store.delete(&key).await }) {
            Err(Failure::Answer(error)) if Whereabouts::is_absence(&error) => Ok(()),
            done => self.failed(path, done),
        }
    }

    fn clear(&self, path: &str) -> Result<(), StorageError> {
        let (store, key) = (self.link.store(), self.link.key(path)?);
        let done = self.link.run(async move {
            let found = store.list(Some(&key)).map_ok(|object| object.location).boxed();
            store.delete_stream(found).try_for_each(|_| async { Ok(()) }).await
        });
        match done {
            Err(Failure::Answer(error)) if Whereabouts::is_absence(&error) => Ok(()),
            done => self.failed(path, done),
        }
    }

    fn place(&self, path: &str) -> Result<Option<PathBuf>, StorageError> {
        checked(path).map(|_| None)
    }

    fn settle(&self, _: &str) -> Result<(), StorageError> {
        Ok(()) // What was answered stays.
    }
}

/// The next part of a content; an empty one at its end.
fn next_part(path: &str, content: &mut dyn Read) -> Result<Vec<u8>, StorageError> {
    let mut part = vec![0; PART_BYTES];
    let length = fill(content, &mut part).map_err(|error| content_error(path, error))?;
    part.truncate(length);
    Ok(part)
}

fn content_error(path: &str, error: std::io::Error) -> StorageError {
    StorageError::within(error).unwrap_or_else(|source| StorageError::Content { path: path.to_owned(), source })
}
