//! The load generator, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Where a server is, and the keys for it.
pub(super) struct Credentials {
    pub(super) server: String,
    pub(super) pki: PathBuf,
}

/// The load generator, pointed at one server.
pub(super) struct Load {
    program: PathBuf,
    credentials: Credentials,
}

/// A scenario that runs.
pub(super) struct Running(Child);

/// A scenario that goes on until the value is dropped.
pub(super) struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

impl Load {
    pub(super) fn new(program: &Path, credentials: Credentials) -> Self {
        Self { program: program.to_owned(), credentials }
    }

    /// Begins to wait until the server is ready.
    pub(super) fn begin_ready(&self) -> Result<Running> {
        self.begin(&["ready"])
    }

    /// Runs a scenario and returns its result.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Value> {
        self.begin(arguments)?.end().with_context(|| format!("the load {}", arguments.join(" ")))
    }

    /// Starts a scenario that goes on, and waits for the line in which it says that all is there.
    pub(super) fn background(&self, arguments: &[&str]) -> Result<Background> {
        let Running(mut child) = self.begin(arguments)?;
        let output = child.stdout.take().context("its output is read")?;
        let (background, mut line) = (Background(child), String::new());
        BufReader::new(output).read_line(&mut line)?;
        if line.is_empty() {
            bail!("the load {} ended at once; its message is above", arguments.join(" "));
        }
        Ok(background)
    }

    /// Where the server is, and the keys for it.
    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    fn begin(&self, arguments: &[&str]) -> Result<Running> {
        let Credentials { server, pki } = &self.credentials;
        let mut command = Command::new(&self.program);
        command
            .args(["--server", server])
            .arg("--authority")
            .arg(pki.join("ca.crt"))
            .arg("--certificate")
            .arg(pki.join("admin.crt"))
            .arg("--key")
            .arg(pki.join("admin.key"))
            .args(arguments);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Ok(Running(child.context("cannot start the load generator")?))
    }
}

impl Running {
    /// Whether it has ended.
    pub(super) fn is_over(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Ends it without a result.
    pub(super) fn give_up(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }

    /// The result, once it is there.
    pub(super) fn end(self) -> Result<Value> {
        let output = self.0.wait_with_output()?;
        if !output.status.success() {
            bail!("the load generator failed; its message is above");
        }
        serde_json::from_slice(&output.stdout).context("the load generator printed no result")
    }
}
