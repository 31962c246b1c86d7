//! What is counted of backups: told by whoever writes their status, from the same record.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics::{Buckets, Labels};

/// From seconds to a day.
const SECONDS: [f64; 14] =
    [1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 43200.0, 86400.0];

/// What is backed up.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The figures of all backups of a process.
#[derive(Clone)]
pub struct BackupFigures {
    backups: Family<Labels, Counter>,
    seconds: Family<Labels, Histogram, Buckets>,
    last_success: Family<Labels, Gauge<f64, AtomicU64>>,
    verified: Family<Labels, Gauge<f64, AtomicU64>>,
}

impl Default for BackupFigures {
    fn default() -> Self {
        Self {
            backups: Family::default(),
            seconds: Family::new_with_constructor(Buckets(&SECONDS)),
            last_success: Family::default(),
            verified: Family::default(),
        }
    }
}

impl BackupFigures {
    pub(crate) fn register(&self, to: &mut Registry) {
        to.register("operator_backups", "Backups that ended, by result", self.backups.clone());
        to.register("operator_backup_duration_seconds", "Time of backups that succeeded", self.seconds.clone());
        to.register(
            "operator_backup_last_success_timestamp_seconds",
            "When the last backup of a resource succeeded; 0 if none ever did",
            self.last_success.clone(),
        );
        to.register(
            "operator_restore_verified_timestamp_seconds",
            "When a backup of a resource was last restored to see that it can be; 0 if none ever was",
            self.verified.clone(),
        );
    }

    /// Counts a backup that succeeded.
    pub fn succeeded(&self, method: &str, took: Duration) {
        self.backups.get_or_create(&result(method, "succeeded")).inc();
        self.seconds.get_or_create(&vec![("method", method.to_owned())]).observe(took.as_secs_f64());
    }

    /// Counts a backup that failed.
    pub fn failed(&self, method: &str) {
        self.backups.get_or_create(&result(method, "failed")).inc();
    }

    /// A backup of `subject` succeeded at this time; `None` only says that there is something to be backed up.
    pub fn last_success(&self, subject: &Subject<'_>, at_seconds: Option<i64>) {
        latest(&self.last_success, subject, at_seconds);
    }

    /// A backup of `subject` was verified at this time; `None` only says that there is something to be verified.
    pub fn verified(&self, subject: &Subject<'_>, at_seconds: Option<i64>) {
        latest(&self.verified, subject, at_seconds);
    }
}

fn latest(family: &Family<Labels, Gauge<f64, AtomicU64>>, subject: &Subject<'_>, at_seconds: Option<i64>) {
    let labels = vec![
        ("kind", subject.kind.to_owned()),
        ("namespace", subject.namespace.to_owned()),
        ("name", subject.name.to_owned()),
    ];
    let gauge = family.get_or_create_owned(&labels);
    let at = at_seconds.unwrap_or(0) as f64;
    if at > gauge.get() {
        gauge.set(at);
    }
}

fn result(method: &str, result: &str) -> Labels {
    vec![("method", method.to_owned()), ("result", result.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn the_last_success_is_the_latest_and_never_is_told_too() {
        let metrics = Metrics::new();
        let of = |name| Subject { kind: "Shop", namespace: "a", name };
        metrics.backups().last_success(&of("never"), None);
        for at in [5, 7, 6] {
            metrics.backups().last_success(&of("often"), Some(at));
        }
        metrics.backups().succeeded("copy", Duration::from_secs(2));
        metrics.backups().failed("copy");
        let text = metrics.render();
        for line in [
            "operator_backup_last_success_timestamp_seconds{kind=\"Shop\",namespace=\"a\",name=\"never\"} 0.0",
            "operator_backup_last_success_timestamp_seconds{kind=\"Shop\",namespace=\"a\",name=\"often\"} 7.0",
            "operator_backups_total{method=\"copy\",result=\"succeeded\"} 1",
            "operator_backups_total{method=\"copy\",result=\"failed\"} 1",
            "operator_backup_duration_seconds_sum{method=\"copy\"} 2.0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
