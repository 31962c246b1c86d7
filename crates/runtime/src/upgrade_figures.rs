//! What is counted of upgrades: told by whoever writes their record, from that record.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use windlass_core::News;

use crate::metrics::Labels;

/// The figures of all upgrades of a process.
#[derive(Clone, Default)]
pub(crate) struct UpgradeFigures {
    upgrades: Family<Labels, Counter>,
    rollbacks: Family<Labels, Counter>,
}

impl UpgradeFigures {
    pub(crate) fn register(&self, to: &mut Registry) {
        to.register("operator_upgrades", "Upgrades that ended, by result", self.upgrades.clone());
        to.register("operator_rollbacks", "Revisions that failed and were taken back", self.rollbacks.clone());
    }

    /// Makes the figures of a kind known before anything happened, so that the first time shows as a change.
    pub(crate) fn begin(&self, kind: &str) {
        for result in ["succeeded", "rolled_back", "failed"] {
            drop(self.upgrades.get_or_create(&labels(kind, result)));
        }
        drop(self.rollbacks.get_or_create(&vec![("kind", kind.to_owned())]));
    }

    /// Counts what is new in a record that was written.
    pub(crate) fn count(&self, kind: &str, news: &News) {
        let result = match news {
            News::Succeeded { .. } => "succeeded",
            News::RolledBack(_) => "rolled_back",
            News::Failed(_) => "failed",
        };
        self.upgrades.get_or_create(&labels(kind, result)).inc();
        if matches!(news, News::RolledBack(_)) {
            self.rollbacks.get_or_create(&vec![("kind", kind.to_owned())]).inc();
        }
    }
}

fn labels(kind: &str, result: &str) -> Labels {
    vec![("kind", kind.to_owned()), ("result", result.to_owned())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn what_never_happened_is_told_too() {
        let metrics = Metrics::new();
        metrics.upgrades().begin("Shop");
        metrics.upgrades().count("Shop", &News::Succeeded { from: "1".into(), to: "2".into() });
        let text = metrics.render();
        for line in [
            "operator_upgrades_total{kind=\"Shop\",result=\"succeeded\"} 1",
            "operator_upgrades_total{kind=\"Shop\",result=\"rolled_back\"} 0",
            "operator_rollbacks_total{kind=\"Shop\"} 0",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in {text}");
        }
    }
}
