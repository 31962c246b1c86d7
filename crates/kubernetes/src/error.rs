//! Why a control plane does not start.

use std::io;
use std::path::{Path, PathBuf};

/// Why a control plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// A program of it is missing.
    #[error("there is no {}: run `cargo xtask tools kube-apiserver kube-controller-manager kube-scheduler etcd`", .0.display())]
    Missing(PathBuf),
    /// A program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// No port can be had.
    #[error("no port is free: {0}")]
    Port(#[source] io::Error),
    /// A program ended, or did not answer in time.
    #[error("{name} does not answer; its log is {}", log.display())]
    Silent {
        /// The program.
        name: &'static str,
        /// What it said.
        log: PathBuf,
    },
}

impl PlaneError {
    /// The failure of using a file.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::File { path: path.to_owned(), source }
    }
}
