//! The log of an operator: for people, or a line of JSON each with the keys of a run beside those of the line.

use std::fmt;

use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// How to write the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Writes the log to standard error. A host program may have set up its own log already; then that one is used.
pub(crate) fn to_stderr(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    // Where the log cannot be written a line is lost; the complaint about that would be a panic in whoever logs.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.fmt_fields(JsonFields::new()).event_format(Lines).try_init(),
    };
}

/// A line of JSON for each event.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Map::new();
        line.insert("timestamp".into(), jiff::Timestamp::now().to_string().into());
        line.insert("level".into(), event.metadata().level().as_str().into());
        line.insert("target".into(), event.metadata().target().into());
        let mut own = String::new();
        context.format_fields(Writer::new(&mut own), event)?;
        // The keys of the innermost win, and those of the line itself over all.
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                line.extend(members(&fields.fields));
            }
        }
        line.extend(members(&own));
        writeln!(writer, "{}", Value::Object(line))
    }
}

fn members(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_of_a_run_has_its_keys_beside_its_own() {
        let sink = Sink::default();
        let writer = sink.clone();
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone());
        let log = log.fmt_fields(JsonFields::new()).event_format(Lines).finish();
        tracing::subscriber::with_default(log, || {
            let run = tracing::error_span!("reconcile", controller = "cache", reconcileID = "1", name = "c");
            run.in_scope(|| tracing::info!(reason = "Updated", name = "child", "Updated \"it\""));
            tracing::warn!("Outside");
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let pick = |key: &str| lines[0][key].as_str().unwrap_or_default().to_owned();
        let keys = ["level", "controller", "reconcileID", "reason", "name", "message"].map(pick);
        assert_eq!(keys, ["INFO", "cache", "1", "Updated", "child", "Updated \"it\""]);
        assert_eq!((lines.len(), lines[1].get("controller")), (2, None));
    }
}
