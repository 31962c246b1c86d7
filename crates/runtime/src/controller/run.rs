//! One run as it is told: in the log, in the journal and in traces.

use std::sync::Arc;

use crate::journal::{Ended, Present, Runs, Subject};
use crate::queue::{Key, Taken};
use crate::reconcile::Handle;
use crate::trace::{Attribute, Value};

/// A run, and who wants to know of it.
pub(super) struct Recorded {
    present: Arc<Present>,
    subject: Option<Subject>,
    runs: Option<Runs>,
    is_kept: bool,
}

impl Recorded {
    /// A run begins for what was taken.
    pub(super) fn begin<Q: Key>(
        handle: &Handle,
        controller: &str,
        subject: Option<Subject>,
        taken: &mut Taken<Q>,
    ) -> Self {
        let present = Present::new(controller, subject.clone(), handle.clock.now(), handle.tracer.as_ref());
        present.woken(std::mem::take(&mut taken.triggers), taken.more_triggers, taken.waited);
        let runs = handle.runs.clone().filter(|_| subject.is_some());
        if let (Some(runs), Some(subject)) = (&runs, &subject) {
            runs.begin(subject, present.clone());
        }
        let is_kept = runs.is_some() || handle.tracer.is_some();
        Self { present, subject, runs, is_kept }
    }

    /// The keys that every line of the log has, by the names that others give them. The level is that of the least filter:
    /// a warning without them would be worth little.
    pub(super) fn span<Q: Key>(&self, controller: &str, key: &Q) -> tracing::Span {
        let id = self.present.id();
        match &self.subject {
            Some(subject) => tracing::error_span!(
                "reconcile",
                controller,
                controllerGroup = subject.group,
                controllerKind = subject.kind,
                namespace = subject.namespace,
                name = subject.name,
                reconcileID = id,
            ),
            None => tracing::error_span!("reconcile", controller, ?key, reconcileID = id),
        }
    }

    /// Does `work` as this run. Where nobody keeps or traces runs, nothing is entered.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> T {
        if self.is_kept { self.present.within(work).await } else { work.await }
    }

    /// The run is over.
    pub(super) fn end(self, ended: Ended) {
        let run = self.present.ended(ended, self.subject.as_ref().map(attributes).unwrap_or_default());
        if let (Some(runs), Some(subject)) = (&self.runs, &self.subject) {
            runs.end(subject, run);
        }
    }
}

fn attributes(subject: &Subject) -> Vec<Attribute> {
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut attributes = vec![
        ("k8s.object.group", Value::Text(subject.group.clone())),
        ("k8s.object.kind", Value::Text(subject.kind.clone())),
        ("k8s.namespace.name", Value::Text(optional(&subject.namespace))),
        ("k8s.object.name", Value::Text(subject.name.clone())),
        ("k8s.cluster.name", Value::Text(optional(&subject.cluster))),
    ];
    attributes.retain(|(_, value)| *value != Value::Text(String::new()));
    attributes
}
