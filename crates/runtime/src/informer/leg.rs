//! The watches behind an informer: one for each namespace, or one for all, each with its own back-off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::runtime::watcher::{self, Event};
use tokio::task::{AbortHandle, JoinSet};

use super::Surroundings;
use super::feed::{self, Intake, Unreadable};
use super::wire::{self, Wire};
use crate::backoff::Backoff;
use crate::health::Check;
use crate::metrics::WatchMetrics;
use crate::namespaces::Namespaces;
use crate::watch::Target;
use windlass_clock::Clock;

/// A watch without an error for this long after a failure has recovered.
const RECOVERED_AFTER: Duration = Duration::from_secs(10);

/// What the watches of an informer share.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) target: Target,
    /// Where it watches, if that can change.
    pub(super) namespaces: Namespaces,
    pub(super) intake: Arc<dyn Intake>,
    pub(super) client: Client,
    pub(super) surroundings: Surroundings,
}

impl Watcher {
    /// Watches for ever, where it is wanted at the time.
    pub(super) async fn run(self) {
        let Some(mut namespaces) = self.namespaces.changes() else {
            return self.leg(None).run().await;
        };
        // Legs end with this task.
        let mut tasks = JoinSet::new();
        let mut legs: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            let names = namespaces.borrow_and_update().clone();
            let left: Vec<_> = legs.keys().filter(|name| !names.contains(*name)).cloned().collect();
            for name in left {
                if let Some(leg) = legs.remove(&name) {
                    leg.abort();
                    ended(&mut tasks, &leg).await;
                }
                self.intake.leave(&name);
            }
            for name in &names {
                if !legs.contains_key(name) {
                    legs.insert(name.clone(), tasks.spawn(self.leg(Some(name.clone())).run()));
                }
            }
            self.intake.progress().send_modify(|progress| progress.begun = true);
            if namespaces.changed().await.is_err() {
                return;
            }
        }
    }

    fn leg(&self, namespace: Option<String>) -> Leg {
        let mut target = self.target.clone();
        if namespace.is_some() {
            target.namespace.clone_from(&namespace);
        }
        let surroundings = &self.surroundings;
        let title = match &surroundings.cluster {
            Some(cluster) => format!("{} of {cluster}", target.title()),
            None => target.title(),
        };
        let leg = Leg {
            target,
            namespace,
            intake: self.intake.clone(),
            client: self.client.clone(),
            clock: surroundings.clock.clone(),
            check: surroundings.health.check(format!("watch {title}"), feed::NOT_LISTED),
            metrics: surroundings.metrics.watch(&title),
            title,
        };
        leg.progress(|_| {});
        leg
    }
}

/// Waits until a task that was told to end has ended: what it did comes before what follows.
async fn ended(tasks: &mut JoinSet<()>, leg: &AbortHandle) {
    while !leg.is_finished() {
        if tasks.join_next().await.is_none() {
            return;
        }
    }
}

/// One watch.
struct Leg {
    target: Target,
    namespace: Option<String>,
    intake: Arc<dyn Intake>,
    client: Client,
    clock: Clock,
    check: Check,
    metrics: WatchMetrics,
    title: String,
}

impl Leg {
    async fn run(self) {
        let mut events = wire::events(&self.target, self.client.clone());
        let mut failures = 0;
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                // A watch that was taken up again says nothing until something happens: no news is good news.
                () = self.clock.sleep(RECOVERED_AFTER), if failures > 0 => {
                    failures = 0;
                    self.observe(None);
                    continue;
                }
            };
            match event {
                Some(Ok(event)) => {
                    failures = 0;
                    self.observe(Some(event));
                }
                Some(Err(error)) => {
                    failures += 1;
                    self.failed(&error, failures).await;
                }
                None => return,
            }
        }
    }

    /// Takes in an event, or that there was none for a while.
    fn observe(&self, event: Option<Event<Wire>>) {
        let is_listed = matches!(event, Some(Event::InitDone));
        let taken_in = event.map(|event| self.intake.observe(self.namespace.as_deref(), event));
        if let Some(Err(Unreadable { key, why })) = taken_in {
            tracing::warn!(watch = %self.title, object = %key, error = %why, "Cannot read the object; it is left out");
        }
        if is_listed || self.is_listed() {
            self.check.well();
            self.metrics.up.set(1);
        }
        if is_listed {
            self.progress(|leg| *leg = feed::Leg { listed: true, trouble: None });
        }
    }

    async fn failed(&self, error: &watcher::Error, failures: u32) {
        self.metrics.errors.inc();
        // A watch that ends now and then, or falls behind, is ordinary; one that does not come back is not.
        if failures > 1 || !self.is_listed() {
            let advice = advice(error);
            tracing::warn!(watch = %self.title, %error, "Cannot watch{advice}");
            let trouble = format!("{error}{advice}");
            self.check.trouble(trouble.clone());
            self.metrics.up.set(0);
            self.progress(|leg| leg.trouble = Some(trouble));
        } else {
            tracing::debug!(watch = %self.title, %error, "Watch interrupted");
        }
        let backoff = if code(error) == Some(404) { Backoff::MISSING_KIND } else { Backoff::WATCH };
        self.clock.sleep(backoff.jittered(failures, &self.clock)).await;
    }

    fn is_listed(&self) -> bool {
        self.intake.progress().borrow().legs.get(&self.namespace).is_some_and(|leg| leg.listed)
    }

    fn progress(&self, change: impl FnOnce(&mut feed::Leg)) {
        self.intake.progress().send_modify(|progress| {
            progress.begun |= self.namespace.is_none();
            change(progress.legs.entry(self.namespace.clone()).or_default());
        });
    }
}

/// The HTTP status that a watch failed with, if there was an answer.
fn code(error: &watcher::Error) -> Option<u16> {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// What a person can do about a watch that fails.
fn advice(error: &watcher::Error) -> &'static str {
    match code(error) {
        Some(404) => ": the API does not know this kind yet; apply its definition",
        Some(403) => ": allow get, list and watch in the role",
        Some(401) => ": the credentials are not accepted",
        _ => "",
    }
}
