//! Reading a bundle of whomever: nothing in it is believed before it was checked.

use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Deserialize;
use serde_json::Value;

use super::description::{Api, Description, FORMAT, apis};
use super::{Bundle, DESCRIPTION, MANIFESTS, archive, digest, version};

/// What is wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file or folder.
    #[error("cannot {verb} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// No description is in it.
    #[error("{path} is not a bundle: it has no {DESCRIPTION}", path = .0.display())]
    NotABundle(PathBuf),
    /// Something else is where a bundle should be written.
    #[error("{path} is there and is no bundle: give another folder with -o, or remove it", path = .0.display())]
    Foreign(PathBuf),
    /// A path that leads elsewhere, a link, or a file that is there twice.
    #[error("{bundle} has {path}, which no bundle may have: a path that leads elsewhere, a link, or a file twice",
            bundle = bundle.display(), path = path.display())]
    BadPath {
        /// The bundle.
        bundle: PathBuf,
        /// The path in it.
        path: PathBuf,
    },
    /// More than any operator needs.
    #[error("{path} is too large for a bundle: at most {} MiB, {} MiB for a file, {} files",
            super::BUNDLE_BYTES_MAX >> 20, super::FILE_BYTES_MAX >> 20, super::FILES_MAX, path = .0.display())]
    TooLarge(PathBuf),
    /// The description cannot be read.
    #[error("{DESCRIPTION} cannot be read: {0}")]
    Description(#[from] serde_json::Error),
    /// The description is of another form.
    #[error("the bundle is of form {0}, and this program knows form {FORMAT}: use the program that belongs to it")]
    Format(u64),
    /// A file is not the one that was described.
    #[error("{path} is not the file that was described: {found} instead of {expected}")]
    Digest {
        /// The file.
        path: String,
        /// What was described.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The files and the description do not agree.
    #[error("the bundle does not agree with itself: {0}")]
    Disagreement(String),
}

impl Bundle {
    /// Reads and checks a bundle: a folder, or an archive that ends in `.tar`.
    ///
    /// # Errors
    /// When it cannot be read, is larger than bundles are, or is not what it says of itself.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let mut files = archive::load(path)?;
        let text = files.remove(DESCRIPTION).unwrap_or_default();
        let value: Value = serde_json::from_slice(&text)?;
        let format = value["format"].as_u64().unwrap_or(0);
        if format != u64::from(FORMAT) {
            return Err(BundleError::Format(format));
        }
        let bundle = Self { description: Description::deserialize(value)?, files };
        bundle.check()?;
        Ok(bundle)
    }

    fn check(&self) -> Result<(), BundleError> {
        let described = &self.description.files;
        for (path, bytes) in &self.files {
            let found = digest(bytes);
            let Some(expected) = described.get(path) else {
                return Err(BundleError::Disagreement(format!("{path} is not described")));
            };
            if *expected != found {
                return Err(BundleError::Digest { path: path.clone(), expected: expected.clone(), found });
            }
        }
        if let Some(path) = described.keys().find(|path| !self.files.contains_key(*path)) {
            return Err(BundleError::Disagreement(format!("{path} is described and not there")));
        }
        if !version::is_version(&self.description.version) {
            return Err(BundleError::Disagreement(format!("{:?} is not a version", self.description.version)));
        }
        let provided = self.provided()?;
        if provided != self.description.provides {
            let why = format!("it defines {provided:?} and says that it provides {:?}", self.description.provides);
            return Err(BundleError::Disagreement(why));
        }
        Ok(())
    }

    /// The objects that a cluster needs, in the order in which to apply them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn manifests(&self) -> Result<Vec<Value>, BundleError> {
        let text = self.files.get(MANIFESTS).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let missing = || BundleError::Disagreement(format!("{MANIFESTS} is missing"));
        let bad = |error| BundleError::Disagreement(format!("{MANIFESTS} is not YAML: {error}"));
        serde_saphyr::from_multiple(&text.ok_or_else(missing)?).map_err(bad)
    }

    fn provided(&self) -> Result<Vec<Api>, BundleError> {
        let manifests = self.manifests()?;
        let definitions = manifests.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
        let definitions = definitions.map(CustomResourceDefinition::deserialize).collect::<Result<Vec<_>, _>>();
        definitions
            .map(apis)
            .map_err(|error| BundleError::Disagreement(format!("a definition cannot be read: {error}")))
    }
}
