//! What the server counted, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use windlass_store::Store;

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Kinds come and go; more than this many series are not kept.
const SERIES_MAX: usize = 10_000;
/// The upper ends of the buckets of durations, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 30.0];

/// The counters of one server.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<Series, Durations>>,
    /// Reads and writes.
    in_flight: [AtomicI64; 2],
}

/// What requests that are being answered are counted as, in the order of the counters.
const REQUEST_KINDS: [&str; 2] = ["readOnly", "mutating"];

/// A request that was answered; parts that do not apply are empty.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The version of the group.
    pub version: &'a str,
    /// What the request is about: `cluster`, `namespace` or one `resource`.
    pub scope: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The status of the answer.
    pub code: u16,
    /// How long it took; `None` for streams.
    pub duration: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    verb: String,
    group: String,
    version: String,
    scope: String,
    resource: String,
    subresource: String,
    code: u16,
}

#[derive(Debug, Default)]
struct Durations {
    count: u64,
    timed: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

/// A request that is being answered; dropping it says that it was.
#[derive(Debug)]
pub struct InFlight<'a>(&'a AtomicI64);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a request with this method while it is being answered.
    pub fn begin(&self, method: &Method) -> InFlight<'_> {
        let counter = &self.in_flight[usize::from(!method.is_safe())];
        counter.fetch_add(1, Ordering::Relaxed);
        InFlight(counter)
    }

    /// Counts a request that was answered.
    pub fn observe(&self, observation: &Observation<'_>) {
        let series = Series {
            verb: observation.verb.to_owned(),
            group: observation.group.to_owned(),
            version: observation.version.to_owned(),
            scope: observation.scope.to_owned(),
            resource: observation.resource.to_owned(),
            subresource: observation.subresource.to_owned(),
            code: observation.code,
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.len() >= SERIES_MAX && !requests.contains_key(&series) {
            return;
        }
        requests.entry(series).or_default().add(observation.duration);
    }

    pub(super) fn render(&self, store: &Store) -> String {
        let mut text = String::new();
        self.render_requests(&mut text);
        family(&mut text, "apiserver_current_inflight_requests", "gauge", "Requests that are being answered.");
        for (kind, counter) in REQUEST_KINDS.iter().zip(&self.in_flight) {
            let labels = format!("request_kind={kind:?}");
            line(&mut text, "apiserver_current_inflight_requests", &labels, counter.load(Ordering::Relaxed));
        }
        render_objects(&mut text, store);
        render_process(&mut text);
        text
    }

    fn render_requests(&self, text: &mut String) {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        family(text, "apiserver_request_total", "counter", "Requests that were answered.");
        for (series, durations) in requests.iter() {
            let labels = format!("{},code=\"{}\"", series.labels(), series.code);
            line(text, "apiserver_request_total", &labels, durations.count);
        }
        family(text, "apiserver_request_duration_seconds", "histogram", "How long the answers took.");
        for (series, durations) in requests.iter().filter(|(_, durations)| durations.timed > 0) {
            let labels = format!("{},code=\"{}\"", series.labels(), series.code);
            for (end, count) in BUCKETS.iter().zip(durations.buckets) {
                let labels = format!("{labels},le=\"{end}\"");
                line(text, "apiserver_request_duration_seconds_bucket", &labels, count);
            }
            let all = format!("{labels},le=\"+Inf\"");
            line(text, "apiserver_request_duration_seconds_bucket", &all, durations.timed);
            line(text, "apiserver_request_duration_seconds_sum", &labels, durations.seconds);
            line(text, "apiserver_request_duration_seconds_count", &labels, durations.timed);
        }
    }
}

impl Durations {
    fn add(&mut self, duration: Option<Duration>) {
        self.count += 1;
        let Some(seconds) = duration.map(|duration| duration.as_secs_f64()) else { return };
        self.timed += 1;
        self.seconds += seconds;
        for (end, count) in BUCKETS.iter().zip(&mut self.buckets) {
            *count += u64::from(seconds <= *end);
        }
    }
}

impl Series {
    fn labels(&self) -> String {
        format!(
            "component=\"apiserver\",verb={:?},group={:?},version={:?},resource={:?},subresource={:?},scope={:?}",
            self.verb.to_uppercase(),
            self.group,
            self.version,
            self.resource,
            self.subresource,
            self.scope
        )
    }
}

fn render_objects(text: &mut String, store: &Store) {
    let snapshot = store.snapshot();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (key, _) in snapshot.range("/", None) {
        let mut parts = key.split('/').skip(1);
        let (Some(group), Some(resource)) = (parts.next(), parts.next()) else { continue };
        let resource = if group == "core" { resource.to_owned() } else { format!("{resource}.{group}") };
        *counts.entry(resource).or_default() += 1;
    }
    family(text, "apiserver_storage_objects", "gauge", "Objects that are stored.");
    for (resource, count) in counts {
        line(text, "apiserver_storage_objects", &format!("resource={resource:?}"), count);
    }
    family(text, "windlass_store_revision", "gauge", "The number of the last commit.");
    line(text, "windlass_store_revision", "", snapshot.revision());
}

/// What the kernel says about this process; nothing where it does not say it in this form.
fn render_process(text: &mut String) {
    /// What `/proc/self/stat` counts in; fixed for user space on Linux.
    const TICKS_PER_SECOND: f64 = 100.0;
    const PAGE_BYTES: u64 = 4096;
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return };
    let Some((_, rest)) = stat.rsplit_once(") ") else { return };
    let fields: Vec<u64> = rest.split(' ').skip(1).map(|field| field.trim().parse().unwrap_or_default()).collect();
    let (Some(user), Some(system), Some(pages)) = (fields.get(10), fields.get(11), fields.get(20)) else { return };
    #[expect(clippy::cast_precision_loss, reason = "ticks are far below 2^52")]
    let seconds = (user + system) as f64 / TICKS_PER_SECOND;
    family(text, "process_cpu_seconds_total", "counter", "The processor time of this process.");
    line(text, "process_cpu_seconds_total", "", seconds);
    family(text, "process_resident_memory_bytes", "gauge", "The memory of this process.");
    line(text, "process_resident_memory_bytes", "", pages * PAGE_BYTES);
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_and_objects_are_counted() {
        let store = Store::in_memory();
        let key = "/apps/deployments/red/web";
        store.commit(vec![windlass_store::Write::create(key, "{}")]).await.unwrap();
        let metrics = Metrics::default();
        let duration = Some(Duration::from_millis(30));
        let get = Observation {
            verb: "get",
            group: "",
            version: "v1",
            scope: "resource",
            resource: "pods",
            subresource: "",
            code: 200,
            duration,
        };
        metrics.observe(&get);
        metrics.observe(&get);
        metrics.observe(&Observation { verb: "watch", duration: None, ..get });
        let current = metrics.begin(&Method::GET);
        let text = metrics.render(&store);
        drop(current);
        let labels = concat!(
            r#"component="apiserver",verb="GET",group="",version="v1",resource="pods","#,
            r#"subresource="",scope="resource",code="200""#
        );
        for expected in [
            format!("apiserver_request_total{{{labels}}} 2"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.025\"}} 0"),
            format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"0.05\"}} 2"),
            "apiserver_storage_objects{resource=\"deployments.apps\"} 1".to_owned(),
            "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} is missing in\n{text}");
        }
        assert!(!text.contains("duration_seconds_count{component=\"apiserver\",verb=\"WATCH\""));
        assert!(metrics.render(&store).contains("apiserver_current_inflight_requests{request_kind=\"readOnly\"} 0"));
    }
}
