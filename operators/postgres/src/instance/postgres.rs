//! The programs of PostgreSQL: started, watched and ended.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::config::SOCKETS;
use super::fence;
use super::volume::{ControlFile, Volume};
use crate::names::{POSTGRES_PORT, REPLICATION, SUPERUSER};

/// A server that did not end in order by then is ended otherwise.
const STOP_MAX: Duration = Duration::from_secs(20);
/// Small programs.
const TOOL_MAX: Duration = Duration::from_secs(60);
/// To copy a whole cluster.
const CLONE_MAX: Duration = Duration::from_secs(6 * 3600);
/// How much of what a program says is kept for people.
const SAID_MAX: usize = 400;

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error("{tool} cannot be run: {source}; is it in the image?")]
    Run {
        tool: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{tool} ended with {status}: {said}")]
    Failed { tool: &'static str, status: ExitStatus, said: String },
    #[error("{tool} did not end within {max:?}")]
    Late { tool: &'static str, max: Duration },
    #[error("the volume cannot be written: {0}")]
    Volume(#[from] std::io::Error),
}

/// Where another server is, and the password to it.
pub(crate) struct Source<'a> {
    pub(crate) host: &'a str,
    pub(crate) password: &'a str,
}

/// The server of this member.
pub(crate) struct Postgres {
    pub(crate) volume: Volume,
    child: Option<Child>,
    /// How the server ended that ended last by itself.
    pub(crate) ended: Option<ExitStatus>,
}

impl Postgres {
    pub(crate) fn new(volume: Volume) -> Self {
        Self { volume, child: None, ended: None }
    }

    /// Whether the server's first process runs.
    pub(crate) fn is_running(&mut self) -> bool {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => true,
            Some(ended) => {
                self.ended = ended.ok().flatten();
                tracing::warn!(status = ?self.ended, "The server has ended");
                self.child = None;
                // What it started may have outlived it.
                fence::end_all(&self.volume.data());
                false
            }
            None => false,
        }
    }

    /// What the control file says.
    pub(crate) async fn control(&self) -> Result<ControlFile, ToolError> {
        self.control_of(&self.volume.data()).await
    }

    /// What the control file of another data directory says.
    pub(crate) async fn control_of(&self, data: &Path) -> Result<ControlFile, ToolError> {
        let mut command = Command::new("pg_controldata");
        command.arg("-D").arg(data).env("LC_ALL", "C");
        run("pg_controldata", command, TOOL_MAX).await.map(|said| ControlFile::parse(&said))
    }

    /// Makes the data of a new cluster.
    pub(crate) async fn initialize(&self) -> Result<(), ToolError> {
        self.volume.settle()?;
        let mut command = Command::new("initdb");
        command.arg("-D").arg(self.volume.draft()).args(["-U", SUPERUSER, "--data-checksums", "--encoding=UTF8"]);
        command.args(["--locale=C.UTF-8", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions"]);
        run("initdb", command, TOOL_MAX * 5).await?;
        Ok(self.volume.adopt_draft()?)
    }

    /// Copies the data of a primary. What is on this volume goes only when the copy is whole.
    pub(crate) async fn clone_from(&self, source: &Source<'_>) -> Result<(), ToolError> {
        self.volume.settle()?;
        let mut command = Command::new("pg_basebackup");
        command.arg("-D").arg(self.volume.draft()).args(["-h", source.host, "-p", &POSTGRES_PORT.to_string()]);
        command.args(["-U", REPLICATION, "-w", "-X", "stream", "-c", "fast"]).env("PGPASSWORD", source.password);
        command.env("PGCONNECT_TIMEOUT", "5");
        run("pg_basebackup", command, CLONE_MAX).await?;
        self.volume.mark_draft()?;
        Ok(self.volume.adopt_draft()?)
    }

    /// Leads the data of a former primary back to where the present one is. It does nothing if they did not part.
    pub(crate) async fn rewind(&self, source: &Source<'_>) -> Result<(), ToolError> {
        let target = format!(
            "host={} port={POSTGRES_PORT} user={REPLICATION} dbname=postgres connect_timeout=5 \
             options='-c statement_timeout=0'",
            source.host
        );
        let mut command = Command::new("pg_rewind");
        command.arg("-D").arg(self.volume.data()).arg("--source-server").arg(target).env("PGPASSWORD", source.password);
        run("pg_rewind", command, CLONE_MAX).await.map(drop)
    }

    /// Starts the server; whether it comes up is seen later.
    pub(crate) fn start(&mut self) -> Result<(), ToolError> {
        fence::end_all(&self.volume.data());
        std::fs::create_dir_all(SOCKETS)?;
        let mut command = Command::new("postgres");
        command.arg("-D").arg(self.volume.data()).current_dir(self.volume.data()).stdin(Stdio::null());
        let child = command.spawn().map_err(|source| ToolError::Run { tool: "postgres", source })?;
        self.child = Some(child);
        Ok(())
    }

    /// Ends the server in order: sessions are cut off, everything is written, standbys have received all.
    pub(crate) async fn stop(&mut self) {
        for (signal, max) in [(Signal::INT, STOP_MAX), (Signal::QUIT, STOP_MAX / 4)] {
            self.signal(signal);
            let Some(child) = &mut self.child else { break };
            if tokio::time::timeout(max, child.wait()).await.is_ok() {
                break;
            }
            tracing::warn!("The server does not end in order");
        }
        self.fence().await;
    }

    /// Ends the server at once, with every process of it.
    pub(crate) async fn fence(&mut self) {
        let data = self.volume.data();
        self.signal(Signal::KILL);
        let _ = tokio::task::spawn_blocking(move || fence::end_all(&data)).await;
        if let Some(mut child) = self.child.take() {
            let _ = child.wait().await;
        }
    }

    /// Has the server read its settings again.
    pub(crate) fn reload(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().and_then(Child::id).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Where its data is.
    pub(crate) fn data(&self) -> PathBuf {
        self.volume.data()
    }
}

/// Runs a program to its end and gives what it printed.
pub(crate) async fn run(tool: &'static str, mut command: Command, max: Duration) -> Result<String, ToolError> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(max, command.output()).await.map_err(|_| ToolError::Late { tool, max })?;
    let output = output.map_err(|source| ToolError::Run { tool, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = end_of(String::from_utf8_lossy(&output.stderr).trim());
    Err(ToolError::Failed { tool, status: output.status, said })
}

/// The end of what a program said: why it failed is there.
pub(super) fn end_of(said: &str) -> String {
    let from = said.char_indices().rev().nth(SAID_MAX).map_or(0, |(index, _)| index);
    said[from..].to_owned()
}
