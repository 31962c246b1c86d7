//! The run that the present piece of work belongs to: what it does is entered where it happens.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;

use super::record::{CALLS_MAX, FIELDS_MAX, Made, Next, Run, SEEN_MAX, Seen, Subject, TRIGGERS_MAX, Trigger, Turn};
use super::words::clip;
use crate::tap::Call;
use crate::trace::{self, Tracer};

/// A run in progress.
pub(crate) struct Present {
    id: String,
    subject: Option<Subject>,
    started: Timestamp,
    record: Mutex<Run>,
    trace: Option<(Tracer, trace::Context)>,
}

/// How a run ended, as far as the worker knows.
pub(crate) struct Ended {
    pub(crate) took: Duration,
    pub(crate) failures: u32,
    pub(crate) next: Option<Next>,
}

tokio::task_local! {
    static RUN: Arc<Present>;
}

impl Present {
    /// A run of the controller called `controller` that begins, for the object `subject`.
    pub(crate) fn new(
        controller: &str,
        subject: Option<Subject>,
        started: Timestamp,
        tracer: Option<&Tracer>,
    ) -> Arc<Self> {
        let id = new_id();
        let record = Mutex::new(Run::new(id.clone(), controller.to_owned(), started));
        let trace = tracer.map(|tracer| (tracer.clone(), tracer.root()));
        Arc::new(Self { id, subject, started, record, trace })
    }

    /// The same as in the log and in traces.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Takes in why the object came into line, and for how long it stood there.
    pub(crate) fn woken(&self, triggers: Vec<Trigger>, more: u32, waited: Duration) {
        let mut run = self.lock();
        run.more_triggers =
            more.saturating_add(u32::try_from(triggers.len().saturating_sub(TRIGGERS_MAX)).unwrap_or(0));
        run.triggers = triggers;
        run.triggers.truncate(TRIGGERS_MAX);
        run.waited_ms = millis(waited);
    }

    /// Does `work` as a part of this run.
    pub(crate) async fn within<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        RUN.scope(self.clone(), work).await
    }

    /// The run is over: what is to be remembered of it, and its span.
    pub(crate) fn ended(&self, ended: Ended, attributes: Vec<trace::Attribute>) -> Run {
        let Ended { took, failures, next } = ended;
        let mut run = self.lock();
        (run.took_ms, run.failures, run.next) = (millis(took), failures, next);
        if let Some((tracer, context)) = &self.trace {
            let end = self.started + took;
            tracer.send(trace::of_run(&run, *context, (self.started, end), attributes));
        }
        run.clone()
    }

    /// What is known of it by now.
    pub(crate) fn copy(&self) -> Run {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Run> {
        self.record.lock().expect("no code that can panic runs under this lock")
    }
}

/// Whether the present piece of work belongs to a run.
pub fn is_recorded() -> bool {
    RUN.try_with(|_| ()).is_ok()
}

/// The object that the present piece of work is done for, if it belongs to a run.
pub fn subject() -> Option<Subject> {
    RUN.try_with(|run| run.subject.clone()).ok().flatten()
}

/// The trace that the present piece of work belongs to.
pub(crate) fn trace() -> Option<(Tracer, trace::Context)> {
    RUN.try_with(|run| run.trace.clone()).ok().flatten()
}

/// The present run looked at this. What it looks at again, after its own writes, is told as it was found first.
pub(crate) fn saw(seen: impl FnOnce() -> Seen) {
    enter(|run| {
        let seen = seen();
        let is_new = !run.saw.iter().any(|known| (&known.kind, &known.name) == (&seen.kind, &seen.name));
        if is_new && run.saw.len() < SEEN_MAX {
            run.saw.push(seen);
        }
    });
}

/// The present run came to this decision; a later one replaces it.
pub(crate) fn decided(turn: Turn, reason: &str, message: &str) {
    enter(|run| (run.turn, run.reason, run.message) = (turn, reason.to_owned(), clip(message)));
}

/// The present run ended so, unless it came to a decision.
pub(crate) fn concluded(turn: Turn, reason: &str, message: &str) {
    enter(|run| {
        if run.turn == Turn::Running {
            (run.turn, run.reason, run.message) = (turn, reason.to_owned(), clip(message));
        }
    });
}

/// Whether the present run said itself what failed.
pub(crate) fn is_failure_told() -> bool {
    let told = |turn| matches!(turn, Turn::Failed | Turn::Refused | Turn::Deleting);
    RUN.try_with(|run| told(run.lock().turn)).unwrap_or(false)
}

/// The present run called the API. Reads that were answered are only counted.
pub(crate) fn called(call: &Call, code: Option<u16>, took: Duration) {
    enter(|run| {
        let is_answered = code.is_some_and(|code| code < 400);
        if !call.is_write() && is_answered {
            run.reads = run.reads.saturating_add(1);
        } else if run.calls.len() >= CALLS_MAX {
            run.more_calls = run.more_calls.saturating_add(1);
        } else {
            run.calls.push(Made {
                verb: call.verb.to_owned(),
                group: call.group.clone(),
                resource: call.resource.clone(),
                subresource: call.subresource.clone(),
                namespace: call.namespace.clone(),
                name: call.name.clone(),
                code,
                took_ms: millis(took),
                fields: Vec::new(),
            });
        }
    });
}

/// A call of the present run changed the fields with these paths.
pub(crate) fn changed(call: &Call, paths: impl IntoIterator<Item = String>) {
    last(call, |made| made.fields = paths.into_iter().take(FIELDS_MAX).map(|path| clip(&path)).collect());
}

/// The object that a call of the present run made got this name.
pub(crate) fn named(call: &Call, name: String) {
    last(call, |made| made.name = Some(name));
}

/// The last entry of a call.
fn last(call: &Call, edit: impl FnOnce(&mut Made)) {
    enter(|run| {
        let is_it = |made: &&mut Made| {
            (made.verb.as_str(), &made.resource, &made.subresource) == (call.verb, &call.resource, &call.subresource)
                && (&made.namespace, &made.name) == (&call.namespace, &call.name)
        };
        if let Some(made) = run.calls.iter_mut().rev().find(is_it) {
            edit(made);
        }
    });
}

fn enter(edit: impl FnOnce(&mut Run)) {
    let _ = RUN.try_with(|run| edit(&mut run.lock()));
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A random number in the form that logs of other operators have.
fn new_id() -> String {
    let hex = format!("{:032x}", rand::random::<u128>());
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn call(method: Method, path: &str) -> Call {
        Call::parse(&method, path, None)
    }

    #[tokio::test]
    async fn what_happens_during_a_run_is_entered_and_what_happens_outside_is_not() {
        let present = Present::new("cache", None, Timestamp::UNIX_EPOCH, None);
        let get = call(Method::GET, "/api/v1/namespaces/a/pods/p");
        let post = call(Method::POST, "/api/v1/namespaces/a/pods");
        let patch = call(Method::PATCH, "/apis/apps/v1/namespaces/a/deployments/d");
        called(&patch, Some(200), Duration::ZERO);
        assert!(!is_recorded());
        let work = async {
            called(&get, Some(200), Duration::ZERO);
            called(&get, Some(404), Duration::ZERO);
            called(&post, Some(201), Duration::from_millis(5));
            named(&post, "p-1".into());
            called(&patch, None, Duration::ZERO);
            called(&patch, Some(200), Duration::ZERO);
            changed(&patch, (0..100).map(|number| format!("spec.f{number}")));
            decided(Turn::Waiting, "InProgress", "1 of 2");
            concluded(Turn::Done, "", "");
        };
        present.within(work).await;
        let run = present.copy();
        assert_eq!((run.turn, run.reason.as_str(), run.reads), (Turn::Waiting, "InProgress", 1));
        let calls: Vec<_> =
            run.calls.iter().map(|made| (made.verb.as_str(), made.name.as_deref(), made.code)).collect();
        let expected = [
            ("get", Some("p"), Some(404)),
            ("create", Some("p-1"), Some(201)),
            ("patch", Some("d"), None),
            ("patch", Some("d"), Some(200)),
        ];
        assert_eq!(calls, expected);
        assert_eq!((run.calls[2].fields.len(), run.calls[3].fields.len()), (0, FIELDS_MAX));
    }

    #[tokio::test]
    async fn a_run_that_calls_without_end_is_bounded() {
        let present = Present::new("cache", None, Timestamp::UNIX_EPOCH, None);
        let patch = call(Method::PATCH, "/api/v1/namespaces/a/pods/p");
        let work = async {
            for number in 0..1000 {
                called(&patch, Some(200), Duration::ZERO);
                saw(|| Seen { name: number.to_string(), ..Seen::default() });
            }
        };
        present.within(work).await;
        let run = present.copy();
        assert_eq!((run.calls.len(), run.more_calls as usize, run.saw.len()), (CALLS_MAX, 1000 - CALLS_MAX, SEEN_MAX));
    }
}
