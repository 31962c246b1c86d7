//! The directory of keys, or none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::PkiError;
use crate::directory::{make_private, write_private};

/// The directory of keys; without one, nothing is found and nothing is kept.
pub(super) struct Files(Option<PathBuf>);

impl Files {
    pub(super) fn none() -> Self {
        Files(None)
    }

    pub(super) fn at(dir: &Path) -> Result<Self, PkiError> {
        make_private(dir).map_err(|source| PkiError::File { path: dir.to_owned(), source })?;
        Ok(Files(Some(dir.to_owned())))
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let Some(path) = self.path(name) else { return Ok(None) };
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PkiError::File { path, source }),
        }
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), PkiError> {
        let Some(path) = self.path(name) else { return Ok(()) };
        write_private(&path, text.as_bytes()).map_err(|source| PkiError::File { path, source })
    }

    pub(super) fn damaged(&self, name: &str, reason: &impl ToString) -> PkiError {
        let path = self.path(name).unwrap_or_else(|| PathBuf::from(name));
        PkiError::Damaged { path, reason: reason.to_string() }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.as_ref().map(|dir| dir.join(name))
    }
}
