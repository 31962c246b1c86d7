//! Traces: a span for each run and for each call that it makes, sent to a collector by OTLP over HTTP.
//!
//! Off unless the usual variables name a collector; then a run costs a few random numbers and an entry in a bounded queue.

mod exporter;
mod otlp;
mod settings;
mod span;

pub use settings::{SettingsError, TraceSettings};

pub(crate) use exporter::{Exporting, Tracer};
pub(crate) use span::{Attribute, Context, Value, of_call, of_run};

/// The `traceparent` of the run that the present piece of work belongs to: for calls to services outside of the cluster.
pub fn traceparent() -> Option<String> {
    crate::journal::trace().map(|(_, context)| context.traceparent())
}
