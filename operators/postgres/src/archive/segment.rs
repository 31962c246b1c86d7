//! Files of the log on their way into an archive and out of it: compressed, with the checksum that gzip has.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use windlass::backup::{Put, Storage, StorageError};

use super::layout::Layout;

/// A file of the log is not longer.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Why a file of the log was not archived, or not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum SegmentError {
    #[error("{0:?} is not the name of a file of the log")]
    Name(String),
    #[error("{0} cannot be read: {1}")]
    Read(String, #[source] io::Error),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{0} is damaged in the archive: {1}")]
    Damaged(String, #[source] io::Error),
    #[error("{0} cannot be written: {1}")]
    Write(String, #[source] io::Error),
}

/// Archives the file at `path`. One that is there with the same content is fine: another member, or the one before a failover, has
/// brought it. One with other content is an error, and is not overwritten.
pub(super) fn push(storage: &dyn Storage, layout: &Layout, path: &Path) -> Result<Put, SegmentError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let place = layout.log_file(&name).ok_or_else(|| SegmentError::Name(name.clone()))?;
    let unreadable = |error| SegmentError::Read(name.clone(), error);
    let mut content = Vec::new();
    File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut content)).map_err(unreadable)?;
    // Most files have been brought by another member: to compare costs less than to compress.
    match read(storage, &place, &name) {
        Ok(Some(there)) if there == content => return Ok(Put::Identical),
        Ok(Some(_)) => return Err(StorageError::Different(place).into()),
        // Brought before encryption was asked for: the storage compares it.
        Ok(None) | Err(SegmentError::Storage(StorageError::Plain(_))) => {}
        Err(error) => return Err(error),
    }
    let mut packed = GzBuilder::new().read(content.as_slice(), Compression::fast());
    match storage.put(&place, &mut packed) {
        // Compressed by another release it may look otherwise.
        Err(StorageError::Different(_)) if read(storage, &place, &name)?.is_some_and(|there| there == content) => {
            Ok(Put::Identical)
        }
        put => Ok(put?),
    }
}

/// Brings the file `name` of the log to `to`; `false` if the archive does not have it.
pub(super) fn fetch(storage: &dyn Storage, layout: &Layout, name: &str, to: &Path) -> Result<bool, SegmentError> {
    let place = layout.log_file(name).ok_or_else(|| SegmentError::Name(name.to_owned()))?;
    let Some(content) = read(storage, &place, name)? else { return Ok(false) };
    let unwritable = |error| SegmentError::Write(name.to_owned(), error);
    let draft = to.with_extension("fetched");
    std::fs::write(&draft, content).map_err(unwritable)?;
    std::fs::rename(&draft, to).map_err(unwritable)?;
    Ok(true)
}

fn read(storage: &dyn Storage, place: &str, name: &str) -> Result<Option<Vec<u8>>, SegmentError> {
    let Some(file) = storage.open(place)? else { return Ok(None) };
    let mut content = Vec::new();
    let unpacked = GzDecoder::new(io::BufReader::new(file)).take(FILE_BYTES_MAX).read_to_end(&mut content);
    match unpacked {
        Ok(_) => Ok(Some(content)),
        // What could not be read is not damaged.
        Err(error) => Err(match StorageError::within(error) {
            Ok(error) => SegmentError::Storage(error),
            Err(error) => SegmentError::Damaged(name.to_owned(), error),
        }),
    }
}

#[cfg(test)]
mod tests {
    use windlass::backup::Folder;

    use super::*;

    const NAME: &str = "000000010000000000000003";

    #[test]
    fn a_file_comes_back_as_it_went_and_is_never_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let (folder, layout) = (Folder::at(place.path()), Layout::of("shop/db/u", "7"));
        let (source, back) = (place.path().join(NAME), place.path().join("back"));
        std::fs::write(&source, vec![7; 5000]).unwrap();
        assert!(!fetch(&folder, &layout, NAME, &back).unwrap());
        assert_eq!(push(&folder, &layout, &source).unwrap(), Put::Written);
        assert_eq!(push(&folder, &layout, &source).unwrap(), Put::Identical, "the next primary brings it again");
        std::fs::write(&source, vec![8; 5000]).unwrap();
        let refused = push(&folder, &layout, &source).unwrap_err();
        assert!(matches!(refused, SegmentError::Storage(StorageError::Different(_))), "{refused}");
        assert!(fetch(&folder, &layout, NAME, &back).unwrap());
        assert_eq!(std::fs::read(&back).unwrap(), vec![7; 5000]);
    }

    #[test]
    fn damage_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let (folder, layout) = (Folder::at(place.path()), Layout::of("shop/db/u", "7"));
        let source = place.path().join(NAME);
        let content: Vec<u8> = (0..60_000u32).map(|number| (number * 7919 % 251) as u8).collect();
        std::fs::write(&source, content).unwrap();
        push(&folder, &layout, &source).unwrap();
        let packed = folder.place(&layout.log_file(NAME).unwrap()).unwrap().unwrap();
        let mut bytes = std::fs::read(&packed).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&packed, bytes).unwrap();
        let seen = fetch(&folder, &layout, NAME, &place.path().join("back")).unwrap_err();
        assert!(matches!(seen, SegmentError::Damaged(..)), "{seen}");
        assert!(!place.path().join("back").exists(), "nothing damaged is handed on");
    }
}
