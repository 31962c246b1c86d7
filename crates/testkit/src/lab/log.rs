//! What is logged during a run, kept so that it can be searched.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// The most that is kept of one run.
const BYTES_MAX: usize = 4 << 20;
/// Those who speak of the cluster, and not of the operator.
const CLUSTER: [&str; 9] = [
    "windlass_apiserver",
    "windlass_store",
    "windlass_controllers",
    "windlass_cluster",
    "hyper",
    "h2",
    "tower",
    "mio",
    "polling",
];

/// The log of one thread; a clone is the same log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    bytes: usize,
}

impl Log {
    /// Where the log of this thread is to go.
    pub(crate) fn dispatch(&self) -> Dispatch {
        Dispatch::new(Keeper(self.clone()))
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.lock() = Lines::default();
    }

    /// All lines since line `from`, and how many lines there are.
    pub(crate) fn since(&self, from: usize) -> (Vec<String>, usize) {
        let lines = self.lock();
        (lines.lines.iter().skip(from).cloned().collect(), lines.lines.len())
    }

    /// Adds a line that somebody else may log as well.
    pub(crate) fn add(&self, line: String) {
        let mut lines = self.lock();
        if lines.bytes + line.len() <= BYTES_MAX {
            lines.bytes += line.len();
            lines.lines.push(line);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

struct Keeper(Log);

impl Subscriber for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !CLUSTER.iter().any(|name| metadata.target().starts_with(name))
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line::of(span.metadata());
        span.record(&mut line);
        self.0.add(line.0);
        // Nobody asks which span is which.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        self.0.add(line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::of(event.metadata());
        event.record(&mut line);
        self.0.add(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        Self(format!("{} {}", metadata.level(), metadata.target()))
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_spans_are_kept_and_those_of_the_cluster_are_not() {
        let log = Log::default();
        tracing::dispatcher::with_default(&log.dispatch(), || {
            let span = tracing::info_span!("work", name = "a");
            span.in_scope(|| tracing::debug!(size = 3, "Made"));
            tracing::info!(target: "windlass_apiserver::audit", "Asked");
        });
        let (lines, count) = log.since(0);
        assert_eq!((lines.len(), count), (2, 2), "{lines:?}");
        assert!(lines[0].ends_with("name=a") && lines[1].contains("message=Made size=3"), "{lines:?}");
    }
}
