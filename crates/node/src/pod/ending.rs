//! How a run of a container ends: hook, signal, the end itself, and its last words.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::container::{Job, Run, Update, exit_code};
use super::hook;
use super::observed::Ended;
use super::spec::termination_file;
use crate::log::{self, LogOptions};
use crate::sandbox::Request;

/// What of a termination message is kept, as kubelet does.
const TERMINATION_BYTES_MAX: usize = 4096;
/// What of a log is kept where it stands for the message.
const LOG_LINES_MAX: usize = 80;
const LOG_BYTES_MAX: usize = 2048;
/// How long the rest of the output is waited for after the end.
const OUTPUT_LINGER: Duration = Duration::from_secs(2);
/// What a hook may take after the start.
const POST_START_LIMIT: Duration = Duration::from_secs(300);

impl Run {
    /// Runs what the container wants done after its start; the exit code if that was its end.
    pub(super) async fn post_start(&mut self, job: &mut Job) -> Option<i32> {
        let handler = job.container.lifecycle.as_ref()?.post_start.clone()?;
        let (inside, mut stop) = (self.inside.clone(), job.stop.clone());
        let told = async { stop.wait_for(Option::is_some).await.ok().and_then(|grace| *grace) };
        let grace = tokio::select! {
            result = hook::run(&handler, &inside, POST_START_LIMIT) => match result {
                Ok(()) => return None,
                Err(why) => {
                    job.warn("FailedPostStartHook", why);
                    job.grace()
                }
            },
            code = exit_code(&mut self.running) => return Some(code),
            Some(grace) = told => grace,
        };
        Some(self.stop(job, grace).await)
    }

    /// Ends the program: hook, signal, and after the grace period the end.
    pub(super) async fn stop(&mut self, job: &mut Job, grace: Duration) -> i32 {
        job.event("Killing", format!("Stopping container {}", job.container.name));
        let mut deadline = tokio::time::Instant::now() + grace;
        let handler = job.container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.clone());
        if let Some(handler) = handler
            && !grace.is_zero()
        {
            tokio::select! {
                result = hook::run(&handler, &self.inside, grace) => if let Err(why) = result {
                    job.warn("FailedPreStopHook", why);
                },
                code = exit_code(&mut self.running) => return code,
            }
        }
        self.running.request(Request::Signal(self.origin.stop_signal)).await;
        loop {
            tokio::select! {
                code = exit_code(&mut self.running) => return code,
                () = tokio::time::sleep_until(deadline) => {
                    self.running.request(Request::Kill).await;
                    return exit_code(&mut self.running).await;
                }
                Ok(()) = job.stop.changed() => {
                    let shorter = job.stop.borrow_and_update().unwrap_or_default();
                    deadline = deadline.min(tokio::time::Instant::now() + shorter);
                }
            }
        }
    }

    /// Tells how the program has ended.
    pub(super) async fn finish(mut self, job: &Job, code: i32) {
        let finished = Timestamp::now();
        drop(self.entry);
        self.running.gone().await;
        let _ = tokio::time::timeout(OUTPUT_LINGER, self.output).await;
        self.console.close();
        let reason = match self.excess {
            Some(excess) => excess.reason(),
            None if code == 0 => "Completed",
            None => "Error",
        };
        let ended = Ended {
            code,
            reason: reason.to_owned(),
            message: last_words(job, code).await,
            started: Some(self.started),
            finished,
        };
        job.tell(Update::Ended(ended)).await;
    }
}

/// What the program left as its message; where it wants that and failed without one, the end of its log.
async fn last_words(job: &Job, code: i32) -> Option<String> {
    let mut words = std::fs::read(termination_file(&job.directory())).unwrap_or_default();
    words.truncate(TERMINATION_BYTES_MAX);
    let logs = job.container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if words.is_empty() && logs && code != 0 {
        words = end_of_log(job).await;
    }
    Some(String::from_utf8_lossy(&words).into_owned()).filter(|words| !words.is_empty())
}

async fn end_of_log(job: &Job) -> Vec<u8> {
    let mut files: Vec<PathBuf> = log::files(&job.log_directory())
        .into_iter()
        .filter(|(number, _)| *number == job.number)
        .map(|(_, path)| path)
        .collect();
    // The current file has the shortest name and is read last.
    files.sort();
    if !files.is_empty() {
        files.rotate_left(1);
    }
    let mut pieces = log::read(files, LogOptions { tail_lines: Some(LOG_LINES_MAX), ..LogOptions::default() }, None);
    let mut text = Vec::new();
    while let Some(Ok(piece)) = pieces.recv().await {
        text.extend_from_slice(&piece);
        let over = text.len().saturating_sub(LOG_BYTES_MAX);
        text.drain(..over);
    }
    text
}
