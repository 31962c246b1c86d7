//! Runs a program in a container for a client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::options::Options;
use super::outcome::Outcome;
use super::pump::carry;
use super::remote::{Channel, Remote};
use crate::pod::Inside;
use crate::sandbox::{Input, Report, Running, Terminal};

/// How long a program has to end after its terminal is gone, before it is ended.
const HANGUP_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs the program that a client asks for and tells it how that went.
pub(super) async fn run(inside: Inside, options: Options, remote: Remote) {
    let output = remote.output.clone();
    let outcome = match start(&inside, &options).await {
        Ok(running) => session(running, &options, remote).await,
        Err(why) => Outcome::Failed(format!("error executing command in container: {why}")),
    };
    output.finish(outcome).await;
}

async fn start(inside: &Inside, options: &Options) -> Result<Running, String> {
    let input = match (options.tty, options.stdin) {
        (true, _) => Input::Terminal,
        (false, true) => Input::Pipe,
        (false, false) => Input::Nothing,
    };
    let mut spec = inside.exec_spec(&options.command, input);
    if options.tty && !spec.process.env.iter().any(|(name, _)| name == "TERM") {
        spec.process.env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    let mut running = inside.launcher.exec("exec", &spec).await.map_err(|error| error.to_string())?;
    loop {
        match running.next_report().await {
            Report::Started { .. } => return Ok(running),
            Report::Failed(why) => return Err(why),
            Report::Exited(code) => return Err(format!("the sandbox ended with {code}")),
            Report::Notice(_) | Report::Attached(_) | Report::Suffers { .. } => {}
        }
    }
}

/// Carries input and output until the program has ended.
async fn session(mut running: Running, options: &Options, remote: Remote) -> Outcome {
    let ended = CancellationToken::new();
    let mut pumps = JoinSet::new();
    let terminal = match running.take_terminal() {
        Ok(terminal) => terminal.map(Arc::new),
        Err(error) => return Outcome::Failed(format!("the terminal did not come: {error}")),
    };
    let wants = |wanted: bool, channel: Channel| wanted.then(|| (channel, remote.output.clone()));
    match (&terminal, running.take_output()) {
        (Some(terminal), _) => {
            let stdout = wants(options.stdout, Channel::Stdout);
            pumps.spawn(carry(terminal.output(), stdout, ended.clone()));
        }
        (None, Some((stdout, stderr))) => {
            pumps.spawn(carry(stdout, wants(options.stdout, Channel::Stdout), ended.clone()));
            pumps.spawn(carry(stderr, wants(options.stderr, Channel::Stderr), ended.clone()));
        }
        (None, None) => {}
    }
    let Remote { input, mut sizes, gone, .. } = remote;
    let has_terminal = terminal.is_some();
    let pipe = running.take_input();
    let mut feed = Box::pin(async move {
        let sizes = async {
            while sizes.changed().await.is_ok() {
                let size = *sizes.borrow_and_update();
                terminal.iter().zip(size).for_each(|(terminal, size)| terminal.resize(size));
            }
        };
        let typing = feed(input, terminal.as_deref(), pipe);
        tokio::join!(sizes, typing);
        // The terminal is kept: a client that types no more may still want to see.
        std::future::pending::<()>().await;
        drop(terminal);
    });
    let code = tokio::select! {
        code = exit_code(&mut running) => code,
        () = feed.as_mut() => unreachable!("feeding never ends"),
        () = gone.cancelled(), if has_terminal => {
            pumps.shutdown().await;
            // The last hold on the terminal.
            drop(feed);
            return hang_up(running).await;
        }
    };
    ended.cancel();
    running.gone().await;
    while pumps.join_next().await.is_some() {}
    Outcome::Exited(code)
}

/// Types what the client types, until it ends or the program does not take it.
async fn feed(
    mut input: mpsc::Receiver<Bytes>,
    terminal: Option<&Terminal>,
    mut pipe: Option<tokio::net::unix::pipe::Sender>,
) {
    while let Some(bytes) = input.recv().await {
        let written = match (terminal, &mut pipe) {
            (Some(terminal), _) => terminal.write_all(&bytes).await,
            (None, Some(pipe)) => pipe.write_all(&bytes).await,
            (None, None) => return,
        };
        if written.is_err() {
            return;
        }
    }
}

/// The terminal is closed by now, of which the kernel has told the program; one that does not care is ended.
async fn hang_up(mut running: Running) -> Outcome {
    let code = tokio::time::timeout(HANGUP_TIME_MAX, exit_code(&mut running)).await;
    code.map_or_else(|_| Outcome::Failed("the client is gone".to_owned()), Outcome::Exited)
}

async fn exit_code(running: &mut Running) -> i32 {
    loop {
        if let Report::Exited(code) = running.next_report().await {
            return code;
        }
    }
}
