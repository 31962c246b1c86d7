//! Who asks an object storage.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::StorageError;

/// A credential is not longer.
const KEY_BYTES_MAX: u64 = 16 << 10;

/// The credentials of an object storage. They cannot be shown.
#[derive(Clone)]
pub struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) token: Option<String>,
}

impl Keys {
    /// The credentials from their parts.
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { id: id.into(), secret: secret.into(), token: None }
    }

    /// Reads the credentials of a Secret, as it is mounted.
    ///
    /// # Errors
    /// When one is missing.
    pub fn read(folder: &Path) -> Result<Self, StorageError> {
        let required = |name: &str| {
            let missing = || StorageError::Settings(format!("the Secret of the credentials has no {name}"));
            optional(folder, name)?.ok_or_else(missing)
        };
        let token = optional(folder, "sessionToken")?;
        Ok(Self { id: required("accessKeyID")?, secret: required("secretAccessKey")?, token })
    }
}

fn optional(folder: &Path, name: &str) -> Result<Option<String>, StorageError> {
    let unreadable =
        |error: io::Error| StorageError::Settings(format!("{name} of the credentials cannot be read: {error}"));
    let file = match File::open(folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    file.take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_secret_lacks_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("accessKeyID"), "me\n").unwrap();
        let lack = Keys::read(folder.path()).err().unwrap().to_string();
        assert!(lack.contains("secretAccessKey"), "{lack}");
        std::fs::write(folder.path().join("secretAccessKey"), "mine\n").unwrap();
        let keys = Keys::read(folder.path()).ok().unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.as_str(), keys.token), ("me", "mine", None));
    }
}
