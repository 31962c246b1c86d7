//! kubectl of the pinned release, pointed at one control plane.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::programs;

/// How long something may take to be as wanted.
const PATIENCE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(200);

/// kubectl, pointed at one control plane.
#[derive(Clone)]
pub(super) struct Kubectl {
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn new(kubeconfig: &Path) -> Self {
        Self { kubeconfig: kubeconfig.to_owned() }
    }

    /// Runs it and returns what it printed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output().context("cannot run kubectl")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {} failed: {}", arguments.join(" "), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it until it succeeds.
    pub(super) fn until(&self, arguments: &[&str]) -> Result<String> {
        let begin = Instant::now();
        loop {
            match self.run(arguments) {
                Err(error) if begin.elapsed() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(POLL),
                said => return said,
            }
        }
    }

    /// Applies manifests from their text.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let mut command = self.command(&["apply", "-f", "-"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run kubectl")?;
        child.stdin.take().context("its input is written")?.write_all(text.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("kubectl apply failed; its message is above");
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Objects as kubectl gets them.
    pub(super) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[&["get", "-o", "json"], arguments].concat())?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Gets objects until they are as wanted.
    pub(super) fn get_until(&self, arguments: &[&str], what: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let objects = self.get(arguments)?;
            if is_it(&objects) {
                return Ok(objects);
            }
            if begin.elapsed() > PATIENCE {
                bail!("{what}: not within {PATIENCE:?}");
            }
            std::thread::sleep(POLL);
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(programs::place().join("programs/kubectl"));
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments).stdin(Stdio::null());
        command
    }
}
