//! How a run of a container ends: hook, signal, and the end itself.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::bounds;
use super::container::{Job, Run, Update, exit_code};
use super::hook;
use super::observed::Ended;
use super::termination;
use crate::sandbox::Request;

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
                    job.event("Killing", "FailedPostStartHook".to_owned());
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
        let reason = bounds::reason(code, self.excess, self.inside.group.as_ref());
        let ended = Ended {
            code,
            reason: reason.to_owned(),
            message: termination::message(&job.container, code, &job.directory(), &self.log),
            started: Some(self.started),
            finished,
        };
        job.tell(Update::Ended(ended)).await;
    }
}
