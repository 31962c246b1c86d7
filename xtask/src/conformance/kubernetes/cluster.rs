//! The cluster that is tested: this checkout's, with all controllers and a node that only pretends, or a real one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::images;
use crate::workspace::root;

/// A cluster that does not answer by then will not.
const START_WAIT: Duration = Duration::from_secs(60);
/// Some tests want two nodes, and others compare nodes that they chose with one that they did not.
const FAKE_NODES: &str = "3";
/// How often it is asked.
const POLL: Duration = Duration::from_millis(100);

/// A running cluster; it ends with this value.
pub(super) struct ConformanceCluster {
    process: Child,
    program: PathBuf,
    dir: PathBuf,
}

impl ConformanceCluster {
    /// Starts a cluster of the windlass at `program` below `scratch`; one whose node runs images if it is said how Pods are
    /// kept apart there.
    pub(super) fn start(program: PathBuf, scratch: &Path, kubectl: &Path, node: Option<&str>) -> Result<Self> {
        // The image store is the tests' own, and kept for the next run.
        let cache = root().join("target/conformance/images");
        if node.is_some() {
            images::add(&program, scratch, &cache)?;
        }
        let dir = scratch.join("cluster");
        let log = File::create(scratch.join("cluster.log"))?;
        let process = Command::new(&program)
            .env("XDG_CACHE_HOME", &cache)
            .arg("--dir")
            .arg(&dir)
            .args(["up", "--port", "0", "--no-operators", "--profile"])
            .args(match node {
                Some(isolation) => ["node", "--isolation", isolation],
                None => ["workloads", "--nodes", FAKE_NODES],
            })
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start windlass")?;
        let mut cluster = Self { process, program, dir };
        cluster.wait_ready(kubectl).with_context(|| format!("see {}", scratch.join("cluster.log").display()))?;
        Ok(cluster)
    }

    /// How clients reach it.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn wait_ready(&mut self, kubectl: &Path) -> Result<()> {
        let end = Instant::now() + START_WAIT;
        while Instant::now() < end {
            if let Some(status) = self.process.try_wait()? {
                bail!("the cluster ended with {status}");
            }
            if self.kubeconfig().is_file() {
                let mut ask = Command::new(kubectl);
                ask.arg("--kubeconfig").arg(self.kubeconfig()).args(["wait", "node", "--all", "--for=condition=Ready"]);
                if ask.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
                    return Ok(());
                }
            }
            std::thread::sleep(POLL);
        }
        bail!("the cluster was not ready after {} s", START_WAIT.as_secs())
    }
}

impl Drop for ConformanceCluster {
    fn drop(&mut self) {
        // Its data is scratch, so nothing asks for a polite end; its Pods wait for another start until they are ended.
        self.process.kill().ok();
        self.process.wait().ok();
        Command::new(&self.program).arg("--dir").arg(&self.dir).arg("down").stdout(Stdio::null()).status().ok();
    }
}
