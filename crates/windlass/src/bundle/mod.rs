//! Bundles: an operator with all that is to be known of it before it is installed, as one deterministic artifact.
//!
//! A bundle is a folder or a tar archive. `windlass/bundle.json` says what it is, with a digest of every other file;
//! `windlass/manifests.yaml` is what a cluster needs. `manifests` and `metadata` make it a `registry+v1` bundle, which
//! catalogs and managers of others read, too.

mod archive;
pub(crate) mod command;
mod description;
mod reader;
mod registry;
mod version;
mod webhooks;

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

pub use description::{Api, Description, Permissions, Upgrades};
pub use reader::BundleError;

pub use crate::capability::Capability;

pub(crate) use version::is_version;

use crate::app::Program;
use crate::manifests::{self, File, ManifestOptions, OutputError, yaml};

/// Where a bundle says what it is.
const DESCRIPTION: &str = "windlass/bundle.json";
/// Where what a cluster needs is.
const MANIFESTS: &str = "windlass/manifests.yaml";
/// The largest file of a bundle.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// The largest bundle.
pub const BUNDLE_BYTES_MAX: u64 = 64 << 20;
/// The most files of a bundle.
pub const FILES_MAX: usize = 1000;

/// An operator as one artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// What it is.
    pub description: Description,
    /// Its files by path, without the description.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Where a bundle stands among others of the operator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) version: String,
    pub(crate) upgrades: Upgrades,
    pub(crate) channels: Vec<String>,
}

impl Bundle {
    /// The bundle of an operator.
    pub(crate) fn of(
        program: &dyn Program,
        options: &ManifestOptions,
        standing: Standing,
    ) -> Result<Self, OutputError> {
        let mut files = BTreeMap::new();
        let mut add = |file: File| files.insert(file.path, file.text.into_bytes());
        add(File::new(MANIFESTS, yaml(&manifests::all(program, options))?));
        let registry = registry::why_not(program);
        if registry.is_none() {
            registry::files(program, options, &standing)?.into_iter().for_each(|file| drop(add(file)));
        }
        let digests = files.iter().map(|(path, bytes)| (path.clone(), digest(bytes))).collect();
        let description = description::describe(program, options, standing, (registry, digests));
        Ok(Self { description, files })
    }

    /// What identifies the bundle: the same operator makes the same one, anywhere and at any time.
    pub fn digest(&self) -> String {
        digest(&self.description_bytes())
    }

    fn description_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_string_pretty(&self.description).expect("a description can be written as JSON");
        text.push('\n');
        text.into_bytes()
    }

    /// All files, the description first.
    fn all_files(&self) -> impl Iterator<Item = (&str, Vec<u8>)> {
        let description = std::iter::once((DESCRIPTION, self.description_bytes()));
        description.chain(self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())))
    }
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests;
