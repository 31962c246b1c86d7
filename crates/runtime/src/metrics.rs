//! What the runtime counts, under the names that existing dashboards ask for.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::backup_figures::BackupFigures;
use crate::process;
use crate::upgrade_figures::UpgradeFigures;
use crate::webhook::WebhookFamilies;

pub(crate) type Labels = Vec<(&'static str, String)>;

const RECONCILE_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
/// What client-go counts in.
const REQUEST_SECONDS: [f64; 11] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0];
const QUEUE_SECONDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// All metrics of one manager.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    reconciles: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    terminal_errors: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    timeouts: Family<Labels, Counter>,
    reconcile_seconds: Family<Labels, Histogram, Buckets>,
    max_workers: Family<Labels, Gauge>,
    active_workers: Family<Labels, Gauge>,
    depth: Family<Labels, Gauge>,
    adds: Family<Labels, Counter>,
    retries: Family<Labels, Counter>,
    queue_seconds: Family<Labels, Histogram, Buckets>,
    work_seconds: Family<Labels, Histogram, Buckets>,
    unfinished_seconds: Family<Labels, Gauge<f64, AtomicU64>>,
    longest_seconds: Family<Labels, Gauge<f64, AtomicU64>>,
    requests: Family<Labels, Counter>,
    request_seconds: Family<Labels, Histogram, Buckets>,
    spans_dropped: Counter,
    pub(crate) webhooks: WebhookFamilies,
    backups: BackupFigures,
    upgrades: UpgradeFigures,
    leader_slow: Family<Labels, Counter>,
    leader: Family<Labels, Gauge>,
    watch_up: Family<Labels, Gauge>,
    watch_errors: Family<Labels, Counter>,
    hot_loops: Family<Labels, Counter>,
    paused: Family<Labels, Gauge>,
    switches: Family<Labels, Counter>,
    shards: Family<Labels, Gauge>,
    handlers: Family<Labels, Counter>,
    /// Work in progress by queue, asked when somebody looks.
    in_progress: Mutex<BTreeMap<String, InProgress>>,
}

/// Since when each key of a queue is being worked on.
type InProgress = Box<dyn Fn() -> Vec<Duration> + Send + Sync>;

#[derive(Clone, Debug)]
pub(crate) struct Buckets(pub(crate) &'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// The counters of one queue.
#[derive(Clone, Debug, Default)]
pub struct QueueMetrics {
    pub(crate) depth: Gauge,
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
}

/// The figures of one watch.
pub(crate) struct WatchMetrics {
    pub(crate) up: Gauge,
    pub(crate) errors: Counter,
    labels: Labels,
    all: Metrics,
}

impl Drop for WatchMetrics {
    fn drop(&mut self) {
        self.all.0.watch_up.remove(&self.labels);
        self.all.0.watch_errors.remove(&self.labels);
    }
}

/// The counters of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    pub(crate) success: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) error: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) seconds: Histogram,
    pub(crate) max_workers: Gauge,
    pub(crate) active_workers: Gauge,
    pub(crate) queue_seconds: Histogram,
    pub(crate) work_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry of its own.
    pub fn new() -> Self {
        let mut inner = Inner {
            registry: Registry::default(),
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            reconcile_seconds: Family::new_with_constructor(Buckets(&RECONCILE_SECONDS)),
            max_workers: Family::default(),
            active_workers: Family::default(),
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queue_seconds: Family::new_with_constructor(Buckets(&QUEUE_SECONDS)),
            work_seconds: Family::new_with_constructor(Buckets(&QUEUE_SECONDS)),
            unfinished_seconds: Family::default(),
            longest_seconds: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(Buckets(&REQUEST_SECONDS)),
            spans_dropped: Counter::default(),
            webhooks: WebhookFamilies::default(),
            backups: BackupFigures::default(),
            upgrades: UpgradeFigures::default(),
            leader_slow: Family::default(),
            leader: Family::default(),
            watch_up: Family::default(),
            watch_errors: Family::default(),
            hot_loops: Family::default(),
            paused: Family::default(),
            switches: Family::default(),
            shards: Family::default(),
            handlers: Family::default(),
            in_progress: Mutex::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }

    /// The text that a scraper reads.
    pub fn render(&self) -> String {
        for (name, in_progress) in self.0.in_progress.lock().expect("asking does not panic").iter() {
            let (labels, times) = (queue_labels(name), in_progress());
            let (all, longest) = (times.iter().sum::<Duration>(), times.iter().max().copied().unwrap_or_default());
            self.0.unfinished_seconds.get_or_create(&labels).set(all.as_secs_f64());
            self.0.longest_seconds.get_or_create(&labels).set(longest.as_secs_f64());
        }
        let mut text = String::new();
        encode(&mut text, &self.0.registry).expect("writing to a string does not fail");
        text
    }

    /// The counters of the queue called `name`.
    pub fn queue(&self, name: &str) -> QueueMetrics {
        let labels = queue_labels(name);
        QueueMetrics {
            depth: self.0.depth.get_or_create_owned(&labels),
            adds: self.0.adds.get_or_create_owned(&labels),
            retries: self.0.retries.get_or_create_owned(&labels),
        }
    }

    /// Lets `in_progress` tell how long the keys of the queue called `name` have been worked on.
    pub(crate) fn work_in_progress(&self, name: &str, in_progress: InProgress) {
        let mut all = self.0.in_progress.lock().expect("asking does not panic");
        all.insert(name.to_owned(), in_progress);
    }

    /// The counters of the controller called `name`; all results exist from the start, at zero.
    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        let labels = vec![("controller", name.to_owned())];
        let result = |result: &str| {
            let labels = vec![("controller", name.to_owned()), ("result", result.to_owned())];
            self.0.reconciles.get_or_create_owned(&labels)
        };
        result("requeue");
        ControllerMetrics {
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.0.errors.get_or_create_owned(&labels),
            terminal_errors: self.0.terminal_errors.get_or_create_owned(&labels),
            panics: self.0.panics.get_or_create_owned(&labels),
            timeouts: self.0.timeouts.get_or_create_owned(&labels),
            seconds: self.0.reconcile_seconds.get_or_create_owned(&labels),
            max_workers: self.0.max_workers.get_or_create_owned(&labels),
            active_workers: self.0.active_workers.get_or_create_owned(&labels),
            queue_seconds: self.0.queue_seconds.get_or_create_owned(&queue_labels(name)),
            work_seconds: self.0.work_seconds.get_or_create_owned(&queue_labels(name)),
        }
    }

    /// Counts a request to the API.
    pub(crate) fn request(&self, method: &str, code: Option<u16>, host: &str) {
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let labels = vec![("code", code), ("method", method.to_owned()), ("host", host.to_owned())];
        self.0.requests.get_or_create(&labels).inc();
    }

    /// Counts how long a request to the API took until its answer began.
    pub(crate) fn request_took(&self, verb: &str, host: &str, took: Duration) {
        let labels = vec![("verb", verb.to_uppercase()), ("host", host.to_owned())];
        self.0.request_seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts spans that did not reach the collector.
    pub(crate) fn spans_dropped(&self, spans: u64) {
        self.0.spans_dropped.inc_by(spans);
    }

    /// The figures of webhooks.
    pub(crate) fn webhooks(&self) -> &WebhookFamilies {
        &self.0.webhooks
    }

    /// The figures of upgrades.
    pub(crate) fn upgrades(&self) -> &UpgradeFigures {
        &self.0.upgrades
    }

    /// The figures of backups.
    pub fn backups(&self) -> &BackupFigures {
        &self.0.backups
    }

    /// Counts a renewal of the lease that did not succeed at once.
    pub(crate) fn slow_renewal(&self, lease: &str) {
        self.0.leader_slow.get_or_create(&vec![("name", lease.to_owned())]).inc();
    }

    /// The figures of the watch with this title; they leave with it.
    pub(crate) fn watch(&self, title: &str) -> WatchMetrics {
        let labels = vec![("watch", title.to_owned())];
        let up = self.0.watch_up.get_or_create_owned(&labels);
        let errors = self.0.watch_errors.get_or_create_owned(&labels);
        WatchMetrics { up, errors, labels, all: self.clone() }
    }

    /// Counts a loop that was noticed.
    pub(crate) fn hot_loop(&self, kind: &str) {
        self.0.hot_loops.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// Shows how many resources of a controller are paused.
    pub(crate) fn paused(&self, controller: &str, resources: usize) {
        self.0.paused.get_or_create(&vec![("controller", controller.to_owned())]).set(resources as i64);
    }

    /// Counts that a person used a switch: `force` or `restart`.
    pub(crate) fn switched(&self, controller: &str, switch: &str) {
        let labels = vec![("controller", controller.to_owned()), ("switch", switch.to_owned())];
        self.0.switches.get_or_create(&labels).inc();
    }

    /// Counts a run of a handler: `done`, `failed` or `gave_up`.
    pub(crate) fn handled(&self, controller: &str, handler: &str, outcome: &str) {
        let labels = vec![
            ("controller", controller.to_owned()),
            ("handler", handler.to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        self.0.handlers.get_or_create(&labels).inc();
    }

    /// Shows how many shards this replica holds.
    pub(crate) fn shards(&self, name: &str, held: usize) {
        self.0.shards.get_or_create(&vec![("name", name.to_owned())]).set(held as i64);
    }

    /// Shows whether this process leads.
    pub(crate) fn leading(&self, lease: &str, leads: bool) {
        let labels = vec![("name", lease.to_owned())];
        self.0.leader.get_or_create(&labels).set(leads.into());
        drop(self.0.leader_slow.get_or_create(&labels));
    }
}

impl Inner {
    fn register(&mut self) {
        let to = &mut self.registry;
        to.register("controller_runtime_reconcile", "Reconciles by result", self.reconciles.clone());
        to.register("controller_runtime_reconcile_errors", "Reconciles that failed", self.errors.clone());
        to.register(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed and wait for a change",
            self.terminal_errors.clone(),
        );
        to.register("controller_runtime_reconcile_panics", "Reconciles that panicked", self.panics.clone());
        to.register("controller_runtime_reconcile_timeouts", "Reconciles over their deadline", self.timeouts.clone());
        to.register("controller_runtime_reconcile_time_seconds", "Time per reconcile", self.reconcile_seconds.clone());
        to.register("controller_runtime_max_concurrent_reconciles", "Workers", self.max_workers.clone());
        to.register("controller_runtime_active_workers", "Workers at work", self.active_workers.clone());
        to.register("workqueue_depth", "Keys in line", self.depth.clone());
        to.register("workqueue_adds", "Keys added", self.adds.clone());
        to.register("workqueue_retries", "Keys to be retried", self.retries.clone());
        to.register("workqueue_queue_duration_seconds", "Time in line", self.queue_seconds.clone());
        to.register("workqueue_work_duration_seconds", "Time of work per key", self.work_seconds.clone());
        to.register("workqueue_unfinished_work_seconds", "Time of work in progress", self.unfinished_seconds.clone());
        to.register(
            "workqueue_longest_running_processor_seconds",
            "Time of the longest work in progress",
            self.longest_seconds.clone(),
        );
        to.register_collector(Box::new(process::Usage));
        to.register("rest_client_requests", "Requests to the API by code", self.requests.clone());
        to.register("rest_client_request_duration_seconds", "Time until the API answers", self.request_seconds.clone());
        to.register("operator_spans_dropped", "Spans that did not reach the collector", self.spans_dropped.clone());
        self.webhooks.register(to);
        self.backups.register(to);
        self.upgrades.register(to);
        to.register(
            "leader_election_slowpath",
            "Renewals of the lease that did not succeed at once",
            self.leader_slow.clone(),
        );
        to.register("leader_election_master_status", "1 while this process leads", self.leader.clone());
        to.register("operator_shards", "Shards that this replica holds", self.shards.clone());
        to.register("operator_watch_up", "1 while a watch works", self.watch_up.clone());
        to.register("operator_watch_errors", "Failures of watches", self.watch_errors.clone());
        to.register("operator_hot_loops", "Fields found in a loop of writes", self.hot_loops.clone());
        to.register("operator_paused_resources", "Resources that are paused", self.paused.clone());
        to.register("operator_handler_runs", "Runs of handlers by how they ended", self.handlers.clone());
        to.register("operator_switches", "Uses of the switches force and restart", self.switches.clone());
    }
}

impl ControllerMetrics {
    pub(crate) fn worked(&self, waited: Duration, took: Duration) {
        self.queue_seconds.observe(waited.as_secs_f64());
        self.work_seconds.observe(took.as_secs_f64());
        self.seconds.observe(took.as_secs_f64());
    }
}

fn queue_labels(name: &str) -> Labels {
    vec![("name", name.to_owned()), ("controller", name.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashboards_find_their_names_before_anything_happened() {
        let metrics = Metrics::new();
        metrics.controller("memcached");
        metrics.queue("memcached");
        metrics.request("GET", Some(200), "");
        let times = || vec![Duration::from_secs(2), Duration::from_secs(5)];
        metrics.work_in_progress("memcached", Box::new(times));
        let text = metrics.render();
        for line in [
            r#"controller_runtime_reconcile_total{controller="memcached",result="error"} 0"#,
            r#"controller_runtime_reconcile_total{controller="memcached",result="requeue"} 0"#,
            r#"controller_runtime_reconcile_errors_total{controller="memcached"} 0"#,
            r#"controller_runtime_active_workers{controller="memcached"} 0"#,
            r#"workqueue_depth{name="memcached",controller="memcached"} 0"#,
            r#"workqueue_retries_total{name="memcached",controller="memcached"} 0"#,
            r#"workqueue_unfinished_work_seconds{name="memcached",controller="memcached"} 7"#,
            r#"workqueue_longest_running_processor_seconds{name="memcached",controller="memcached"} 5"#,
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            r#"rest_client_requests_total{code="200",method="GET",host=""} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
