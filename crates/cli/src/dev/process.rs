//! The operator as a process of this machine.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::compile::tell_lines;
use super::course::Event;
use super::{attached, install::Installed};
use crate::failure::Failure;

/// How long an operator may take to end after it was asked to.
const END_WAIT: Duration = Duration::from_secs(15);
/// Between two questions whether it is ready, and how long an answer may take.
const PROBE_PAUSE: Duration = Duration::from_millis(200);
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// How to start the program.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// Where to write down at which address the operator tells of itself.
    pub(crate) journal: PathBuf,
    pub(crate) run: u32,
}

/// An operator that was started.
pub(crate) struct Process {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Process {
    /// Starts the program; what it says and does are events of its run. To be called from the main thread: the process
    /// ends with the thread that started it.
    pub(crate) fn start(launch: &Launch, of: &Installed, events: &mpsc::Sender<Event>) -> Result<Self, Failure> {
        let probes = free_port()?;
        let mut command = attached::command(&launch.program)?;
        command.arg("run").arg("--kubeconfig").arg(&launch.kubeconfig);
        // Webhooks take any port: the API server is told which.
        command.args(["--webhooks=local", "--webhook-bind-address=127.0.0.1:0", "--webhook-namespace", &of.namespace]);
        command.arg("--metrics-bind-address=0").arg(format!("--health-probe-bind-address=127.0.0.1:{probes}"));
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C in the terminal is for this process, which then ends the operator in order.
        let spawned = command.process_group(0).kill_on_drop(true).spawn();
        let mut child =
            spawned.map_err(|error| Failure::new(format!("cannot start {}: {error}", launch.program.display())))?;
        // It is a help for `windlass why`, and not worth an end.
        let _ = std::fs::write(&launch.journal, format!("http://{}:{probes}", Ipv4Addr::LOCALHOST));
        let output = child.stderr.take().expect("stderr was asked for");
        let (stop, run, events) = (CancellationToken::new(), launch.run, events.clone());
        let task = tokio::spawn(live(child, output, Life { stop: stop.clone(), run, probes, events }));
        Ok(Self { stop, task })
    }

    /// Ends the operator in order, or by force after a while.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// What accompanies a process to its end.
struct Life {
    stop: CancellationToken,
    run: u32,
    probes: u16,
    events: mpsc::Sender<Event>,
}

async fn live(mut child: Child, output: ChildStderr, life: Life) {
    let Life { stop, run, probes, events } = life;
    let pid = child.id().unwrap_or_default();
    // Nobody may be listening any more: this process is about to end then, and stops the operator.
    let _ = events.send(Event::Started(run, pid)).await;
    let told = events.clone();
    let mut lines = tokio::spawn(async move { tell_lines(output, |line| told.send(Event::Said(run, line))).await });
    let asked = events.clone();
    let probing = tokio::spawn(async move {
        while !is_ready(probes).await {
            tokio::time::sleep(PROBE_PAUSE).await;
        }
        let _ = asked.send(Event::Ready(run)).await;
    });
    tokio::select! {
        ended = child.wait() => {
            let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            let _ = (&mut lines).await;
            let _ = events.send(Event::Ended(run, how)).await;
        }
        () = stop.cancelled() => {
            lines.abort(); // Its last words concern nobody, and must not hold up its end.
            end(&mut child, pid).await;
        }
    }
    probing.abort();
}

async fn end(child: &mut Child, pid: u32) {
    let Some(group) = Pid::from_raw(pid.cast_signed()) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    if tokio::time::timeout(END_WAIT, child.wait()).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait().await;
    }
}

async fn is_ready(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: dev\r\nconnection: close\r\n\r\n").await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(&answer == b"HTTP/1.1 200")
    };
    matches!(tokio::time::timeout(PROBE_WAIT, ask).await, Ok(Ok(true)))
}

/// A port that nobody has at this moment.
fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let port = listener.and_then(|listener| listener.local_addr()).map(|address| address.port());
    port.map_err(|error| Failure::new(format!("no port is free on 127.0.0.1: {error}")))
}
