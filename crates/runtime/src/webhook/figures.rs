//! What is counted of webhooks, under the names that existing dashboards ask for.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::registration::CONVERT_PATH;
use crate::metrics::{Buckets, Labels};

/// The buckets that every client library begins with, and up to the longest time that callers wait.
const SECONDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The figures of all webhooks of a process.
#[derive(Clone)]
pub(crate) struct WebhookFamilies {
    latency: Family<Labels, Histogram, Buckets>,
    requests: Family<Labels, Counter>,
    in_flight: Family<Labels, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
    certificate_reads: Counter,
    certificate_errors: Counter,
}

impl Default for WebhookFamilies {
    fn default() -> Self {
        Self {
            latency: Family::new_with_constructor(Buckets(&SECONDS)),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
            certificate_reads: Counter::default(),
            certificate_errors: Counter::default(),
        }
    }
}

impl WebhookFamilies {
    pub(crate) fn register(&self, to: &mut Registry) {
        to.register("controller_runtime_webhook_latency_seconds", "Time of webhooks", self.latency.clone());
        to.register("controller_runtime_webhook_requests", "Requests to webhooks by code", self.requests.clone());
        to.register("controller_runtime_webhook_requests_in_flight", "Requests in progress", self.in_flight.clone());
        to.register("controller_runtime_webhook_panics", "Webhooks that panicked", self.panics.clone());
        to.register(
            "controller_runtime_conversion_webhook_panics",
            "Conversions that panicked",
            self.conversion_panics.clone(),
        );
        to.register("certwatcher_read_certificate", "Reads of the certificate", self.certificate_reads.clone());
        to.register(
            "certwatcher_read_certificate_errors",
            "Reads of the certificate that failed",
            self.certificate_errors.clone(),
        );
    }

    /// Lets the figures of the webhooks at these paths begin at zero.
    pub(super) fn expect(&self, paths: impl IntoIterator<Item = String>) {
        for path in paths {
            drop(self.latency.get_or_create(&of(&path)));
            drop(self.in_flight.get_or_create(&of(&path)));
            drop(self.requests.get_or_create(&answered(&path, 200)));
            drop(self.requests.get_or_create(&answered(&path, 500)));
        }
    }

    /// A request to the webhook at `path` begins; it ends when the guard is told the code, or dropped.
    pub(super) fn begin(&self, path: &str) -> InFlight {
        let gauge = self.in_flight.get_or_create_owned(&of(path));
        gauge.inc();
        InFlight { gauge, families: self.clone(), path: path.to_owned(), since: tokio::time::Instant::now() }
    }

    /// The function behind `path` panicked.
    pub(super) fn panicked(&self, path: &str) {
        let panics = if path == CONVERT_PATH { &self.conversion_panics } else { &self.panics };
        panics.inc();
    }

    /// The certificate was read, or could not be.
    pub(super) fn read_certificate(&self, is_read: bool) {
        self.certificate_reads.inc();
        if !is_read {
            self.certificate_errors.inc();
        }
    }
}

/// A request in progress.
pub(super) struct InFlight {
    gauge: Gauge,
    families: WebhookFamilies,
    path: String,
    since: tokio::time::Instant,
}

impl InFlight {
    /// The request was answered.
    pub(super) fn answered(self, code: u16) {
        self.families.requests.get_or_create(&answered(&self.path, code)).inc();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
        self.families.latency.get_or_create(&of(&self.path)).observe(self.since.elapsed().as_secs_f64());
    }
}

fn of(path: &str) -> Labels {
    vec![("webhook", path.to_owned())]
}

fn answered(path: &str, code: u16) -> Labels {
    vec![("webhook", path.to_owned()), ("code", code.to_string())]
}
