//! Builds images from a small file: the part of the Dockerfile language that needs neither root nor a daemon.

mod assembly;
mod changes;
mod context;
mod digest;
mod file;
mod glob;
mod packages;
mod run;
mod stage;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::store::ImageError;

/// What is built, and from what.
#[derive(Debug, Clone)]
pub struct Build {
    /// The name that the image gets.
    pub name: String,
    /// The folder whose files can be copied.
    pub context: PathBuf,
    /// The file with the instructions; without it, `Dockerfile` or `Containerfile` of the context.
    pub file: Option<PathBuf>,
    /// Values for `ARG` instructions.
    pub arguments: BTreeMap<String, String>,
}

/// Why an image was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is nothing to follow.
    #[error("{0}")]
    NoFile(String),
    /// An instruction cannot be understood or followed.
    #[error("{file}:{line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line of the instruction, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The store failed.
    #[error(transparent)]
    Image(#[from] ImageError),
}
