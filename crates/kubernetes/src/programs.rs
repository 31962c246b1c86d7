//! The programs of a control plane.

use std::path::{Path, PathBuf};

use crate::PlaneError;

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Where the API server keeps its objects.
    pub etcd: PathBuf,
    /// The API server.
    pub api_server: PathBuf,
    /// The controllers.
    pub controller_manager: PathBuf,
    /// The scheduler.
    pub scheduler: PathBuf,
}

impl Programs {
    /// The programs in a folder, under the names that they have upstream.
    ///
    /// # Errors
    /// Which of them is missing.
    pub fn in_folder(folder: &Path) -> Result<Self, PlaneError> {
        let find = |name: &str| {
            let path = folder.join(name);
            if path.is_file() { Ok(path) } else { Err(PlaneError::Missing(path)) }
        };
        Ok(Self {
            etcd: find("etcd")?,
            api_server: find("kube-apiserver")?,
            controller_manager: find("kube-controller-manager")?,
            scheduler: find("kube-scheduler")?,
        })
    }
}
