//! The cluster that the tests run on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::workspace::run;

/// A running cluster with every controller and a node that pretends; it ends with this value.
pub(crate) struct Cluster {
    windlass: PathBuf,
    dir: PathBuf,
}

impl Cluster {
    /// Starts a new cluster of the program `windlass` below `place`.
    pub(crate) fn start(place: &Path, windlass: PathBuf) -> Result<Self> {
        let dir = place.join("cluster");
        fs::remove_dir_all(&dir).ok();
        let cluster = Self { windlass, dir };
        let up = ["up", "--detach", "--profile", "workloads", "--port", "0", "--no-operators"];
        run(cluster.command().args(up).stdout(Stdio::null()))?;
        Ok(cluster)
    }

    /// How clients reach it.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.windlass);
        command.arg("--dir").arg(&self.dir);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.command().arg("down").output().ok();
    }
}
