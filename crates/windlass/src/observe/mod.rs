//! What people see of an operator from outside: a dashboard and alerts, made for the operator that prints them.

mod alerts;
mod dashboard;
mod grafana;

pub use alerts::{Alert, AlertGroup, AlertRules, alerts};
pub use dashboard::dashboard;

use crate::app::Program;

/// The names by which the metrics of an operator are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The operator.
    pub operator: String,
    /// The kinds that it serves.
    pub kinds: Vec<String>,
    /// A regular expression for the scraper's job.
    pub job: String,
    /// Whether it has webhooks.
    pub has_webhooks: bool,
}

impl Scope {
    /// The names of `program`; a job has the operator's name in it, unless it is said otherwise.
    pub fn of(program: &dyn Program, job: Option<&str>) -> Self {
        let kinds = program.crds().into_iter().map(|crd| crd.spec.names.kind).collect();
        let operator = program.name().to_owned();
        let job = job.map_or_else(|| format!(".*{operator}.*"), str::to_owned);
        Self { operator, kinds, job, has_webhooks: !program.registration(Vec::new()).is_empty() }
    }

    /// The controllers of the operator's kinds, in its own cluster and in others.
    fn controllers(&self) -> String {
        let names: Vec<String> = self.kinds.iter().map(|kind| kind.to_lowercase()).collect();
        format!("({})(@.+)?", names.join("|"))
    }
}
