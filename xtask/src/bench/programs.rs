//! The programs that take part, and the keys that both sides use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::process::load_average;
use crate::tools;
use crate::workspace::{root, run};

/// The programs that take part.
pub(super) struct Programs {
    pub(super) windlass: PathBuf,
    /// The load generator.
    pub(super) load: PathBuf,
    /// Starts clusters in its own process.
    pub(super) in_process: PathBuf,
    pub(super) kube_apiserver: PathBuf,
    pub(super) etcd: PathBuf,
    /// Where everything is kept; on the disk.
    pub(super) work: PathBuf,
    /// Where nothing reaches a disk.
    pub(super) memory: PathBuf,
}

impl Programs {
    /// Builds what is ours and finds the rest.
    pub(super) fn find(build: bool) -> Result<Self> {
        if build {
            // The load adds no feature to the crates that it shares with windlass; the kit does, and is built by itself, so
            // that each program has the features that it has when a user builds it.
            let programs = [&["windlass-cli", "-p", "windlass-load"][..], &["windlass-testkit", "--example", "start"]];
            for program in programs {
                run(Command::new("cargo").current_dir(root()).args(["build", "--release", "-p"]).args(program))?;
            }
        }
        let release = root().join("target/release");
        let programs = Self {
            windlass: release.join("windlass"),
            load: release.join("windlass-load"),
            in_process: release.join("examples/start"),
            kube_apiserver: tools::kube_apiserver()?,
            etcd: tools::etcd()?,
            work: root().join("target/bench"),
            memory: Path::new("/dev/shm").join(format!("windlass-bench-{}", std::process::id())),
        };
        for dir in [&programs.work, &programs.memory] {
            fs::create_dir_all(dir)?;
        }
        Ok(programs)
    }

    /// Machine, load and versions, in one line.
    pub(super) fn describe() -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        format!(
            "{cores} cores, load {}; kube-apiserver {} with etcd {}",
            load_average(),
            tools::KUBERNETES,
            tools::ETCD
        )
    }

    /// An empty directory for one server.
    pub(super) fn fresh(&self, name: &str, durable: bool) -> Result<PathBuf> {
        let dir = if durable { &self.work } else { &self.memory }.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot empty {}", dir.display()))?;
        }
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.memory).ok();
    }
}
