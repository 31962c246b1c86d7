//! Builds by Cargo, as processes that can be stopped with all that they started.

use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::course::Event;
use crate::scaffold::project::{Project, cargo, no_cargo};

/// A line longer than this is cut.
const LINE_BYTES_MAX: usize = 16 << 10;

/// A build that was started.
pub(crate) struct Compile {
    group: Option<Pid>,
    task: JoinHandle<()>,
}

impl Compile {
    /// Starts a build; what comes of it is an event.
    pub(crate) fn start(project: &Project, events: mpsc::Sender<Event>) -> Self {
        let mut command = Command::from(cargo());
        // `--examples`, also where there are none, makes Cargo choose the features of dependencies as for tests: else
        // `cargo test` and this would each build most of them for itself.
        command.args(["build", "--color", "never", "--examples", "--bin", &project.name]).current_dir(&project.root);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A group of its own: the compilers that Cargo starts are ended with it.
        let spawned = command.process_group(0).kill_on_drop(true).spawn();
        let begin = Instant::now();
        let group = spawned.as_ref().ok().and_then(|child| Pid::from_raw(child.id()?.cast_signed()));
        let task = tokio::spawn(async move {
            let result = match spawned {
                Err(error) => Err(Some(no_cargo(&error).text())),
                Ok(mut child) => {
                    let output = child.stderr.take().expect("stderr was asked for");
                    tell_lines(output, |line| events.send(Event::BuildSaid(line))).await;
                    match child.wait().await {
                        Ok(status) if status.success() => Ok(begin.elapsed()),
                        Ok(_) => Err(None),
                        Err(error) => Err(Some(error.to_string())),
                    }
                }
            };
            let _ = events.send(Event::Built(result)).await;
        });
        Self { group, task }
    }

    /// Ends the build, if it still runs.
    pub(crate) async fn stop(self) {
        if let Some(group) = self.group.filter(|_| !self.task.is_finished()) {
            let _ = kill_process_group(group, Signal::TERM);
        }
        self.task.abort();
        let _ = self.task.await;
    }
}

/// Reads lines to the end, and tells each; what is too long is cut.
pub(crate) async fn tell_lines<F>(output: impl AsyncRead + Unpin, tell: impl Fn(String) -> F)
where
    F: Future<Output = Result<(), mpsc::error::SendError<Event>>>,
{
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while let Ok(chunk) = output.fill_buf().await {
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        line.extend(part.iter().take(LINE_BYTES_MAX.saturating_sub(line.len())));
        let (length, is_end) = (part.len() + usize::from(end.is_some()), chunk.is_empty());
        output.consume(length);
        if end.is_some() || (is_end && !line.is_empty()) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if tell(text).await.is_err() {
                return;
            }
        }
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_never_stop_the_reader() {
        let mut input = b"one\r\n\xff\n".to_vec();
        input.extend(vec![b'x'; LINE_BYTES_MAX * 3]);
        input.extend(b"\nlast");
        let (sender, mut events) = mpsc::channel(16);
        tell_lines(&input[..], |line| sender.send(Event::BuildSaid(line))).await;
        drop(sender);
        let mut lengths = Vec::new();
        while let Some(Event::BuildSaid(line)) = events.recv().await {
            lengths.push(line.chars().count());
        }
        assert_eq!(lengths, [3, 1, LINE_BYTES_MAX, 4]);
    }
}
