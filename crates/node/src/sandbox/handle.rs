//! The node's side of a sandbox: starts it, talks to it, ends it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;

use serde::Serialize;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command};

use super::probe::Capabilities;
use super::spec::{ContainerSpec, ExecSpec, Input, Report, Request};
use super::terminal::Terminal;
use super::{MARK, Role};
use super::{survivor, wire};

/// The code of a process that was killed outright.
const EXIT_KILLED: i32 = 137;

/// Starts sandbox processes from this program's own executable.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

impl Default for Launcher {
    fn default() -> Self {
        // The link leads to the running executable even after a new version replaced the file.
        Self { program: PathBuf::from("/proc/self/exe") }
    }
}

impl Launcher {
    /// Starts a container; `label` is shown by `ps`.
    pub async fn container(&self, label: &str, spec: &ContainerSpec) -> io::Result<Running> {
        // What outlives the node writes to pipes that have a name.
        let output = spec.keep.as_ref().map(|_| survivor::make_output(&spec.scratch)).transpose()?;
        let mut running = self.start(Role::Container, label, spec, spec.input).await?;
        running.output = output.or(running.output.take());
        Ok(running)
    }

    /// Starts a program in a running container.
    pub async fn exec(&self, label: &str, spec: &ExecSpec) -> io::Result<Running> {
        self.start(Role::Exec, label, spec, spec.input).await
    }

    /// Asks the kernel what it allows; `directory` is where containers will keep their writable layers.
    pub async fn probe(&self, directory: &std::path::Path) -> io::Result<Capabilities> {
        let mut running = self.start(Role::Probe, "probe", &directory, Input::Nothing).await?;
        let mut line = String::new();
        running.reports.read_line(&mut line).await?;
        Ok(serde_json::from_str(&line)?)
    }

    async fn start(&self, role: Role, label: &str, spec: &impl Serialize, input: Input) -> io::Result<Running> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut child = Command::new(&self.program)
            .arg0(format!("windlass {label}"))
            .args([MARK, role.name()])
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (given, kept) = ends(input)?;
        let mut line = serde_json::to_vec(spec)?;
        line.push(b'\n');
        let sent = given.as_ref().map_or(Ok(0), |given| wire::send(&ours, &line, given.as_fd()))?;
        drop(given);
        let (reports, mut requests) = UnixStream::from_std(ours)?.into_split();
        requests.write_all(&line[sent..]).await?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let output = child.stdout.take().zip(child.stderr.take());
        let output = output.map(|(stdout, stderr)| (Box::new(stdout) as Output, Box::new(stderr) as Output));
        Ok(Running { life: Life::Child(child), pid, reports: BufReader::new(reports), requests, output, kept })
    }
}

/// The node's end of a program's standard input.
#[derive(Debug)]
pub(super) enum Kept {
    Pipe(pipe::Sender),
    /// The program's side of a terminal comes through this socket.
    Console(StdUnixStream),
}

/// The end of the standard input that the sandbox gets, and the one that stays here.
fn ends(input: Input) -> io::Result<(Option<OwnedFd>, Option<Kept>)> {
    Ok(match input {
        Input::Nothing => (None, None),
        Input::Pipe => {
            let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            (Some(reader), Some(Kept::Pipe(pipe::Sender::from_owned_fd(writer)?)))
        }
        Input::Terminal => {
            let (ours, theirs) = StdUnixStream::pair()?;
            ours.set_nonblocking(true)?;
            (Some(theirs.into()), Some(Kept::Console(ours)))
        }
    })
}

/// What a program writes.
pub type Output = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// How the end of a supervisor is learnt, and brought about.
#[derive(Debug)]
pub(super) enum Life {
    /// This node started it.
    Child(Child),
    /// An earlier one did.
    Adopted(AsyncFd<OwnedFd>),
}

impl Drop for Life {
    fn drop(&mut self) {
        // A child is killed by its own handle.
        if let Self::Adopted(supervisor) = self {
            let _ = rustix::process::pidfd_send_signal(supervisor.get_ref(), rustix::process::Signal::KILL);
        }
    }
}

/// A sandbox that runs. Dropping it ends every process in it.
pub struct Running {
    pub(super) life: Life,
    pub(super) pid: i32,
    pub(super) reports: BufReader<OwnedReadHalf>,
    pub(super) requests: OwnedWriteHalf,
    pub(super) output: Option<(Output, Output)>,
    pub(super) kept: Option<Kept>,
}

impl Running {
    /// The supervisor's process id.
    pub fn supervisor(&self) -> i32 {
        self.pid
    }

    /// The program's output; can be taken once.
    pub fn take_output(&mut self) -> Option<(Output, Output)> {
        self.output.take()
    }

    /// The program's standard input, if it is a pipe; can be taken once.
    pub fn take_input(&mut self) -> Option<pipe::Sender> {
        match self.kept.take_if(|kept| matches!(kept, Kept::Pipe(_))) {
            Some(Kept::Pipe(pipe)) => Some(pipe),
            _ => None,
        }
    }

    /// The program's terminal, if it has one; can be taken once, after the program has started.
    pub fn take_terminal(&mut self) -> io::Result<Option<Terminal>> {
        let console = self.kept.take_if(|kept| matches!(kept, Kept::Console(_)));
        let Some(Kept::Console(console)) = console else { return Ok(None) };
        let (_, descriptor) = wire::receive(&console, &mut [0])?;
        descriptor.map(Terminal::new).transpose()
    }

    /// The next report. A supervisor that ends without a word was killed, and so was its container.
    ///
    /// Safe to drop before it is done: a report is read whole or not at all.
    pub async fn next_report(&mut self) -> Report {
        let mut line = Vec::new();
        let end = match self.reports.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => self.reports.read_until(b'\n', &mut line).await.is_err(),
            _ => true,
        };
        let report = if end { None } else { serde_json::from_slice(&line).ok() };
        report.unwrap_or(Report::Exited(EXIT_KILLED))
    }

    /// Asks the supervisor for something; one that is gone has ended its container already.
    pub async fn request(&mut self, request: Request) {
        let mut line = serde_json::to_vec(&request).expect("requests are plain data");
        line.push(b'\n');
        if let Err(error) = self.requests.write_all(&line).await {
            tracing::debug!(%error, "the supervisor is gone");
        }
    }

    /// Waits until the supervisor is gone, and with it everything that it held.
    pub async fn gone(&mut self) {
        match &mut self.life {
            Life::Child(child) => drop(child.wait().await),
            Life::Adopted(supervisor) => drop(supervisor.readable().await),
        }
    }
}
