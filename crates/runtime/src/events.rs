//! Events on objects: sent in the background, merged when they repeat, limited per object.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::mpsc;
use windlass_core::Event;

use windlass_clock::Clock;

/// How many events may wait to be sent; more are dropped, since news about trouble must not make more of it.
const PENDING_MAX: usize = 1024;
/// How many different events are remembered to merge repetitions into.
const REMEMBERED_MAX: usize = 4096;
/// How long a repetition is merged into the same event.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// An object may have this many events at once …
const BURST: f64 = 25.0;
/// … and then one more per this time.
const REFILL: Duration = Duration::from_secs(300);

/// Sends events; clones are the same sender.
#[derive(Clone, Debug)]
pub struct Recorder(mpsc::Sender<Report>);

#[derive(Debug)]
struct Report {
    regarding: ObjectReference,
    event: Event,
}

impl Recorder {
    /// A recorder in the name of `component`. Must be called inside a tokio runtime.
    pub fn new(client: Client, clock: Clock, component: impl Into<String>) -> Self {
        let (sender, reports) = mpsc::channel(PENDING_MAX);
        let book = Book { clock, component: component.into(), known: HashMap::new(), budgets: HashMap::new() };
        tokio::spawn(send_all(client, book, reports));
        Self(sender)
    }

    /// Records that `event` happened to `object`.
    pub fn record<K: Resource>(&self, object: &K, dyntype: &K::DynamicType, event: Event) {
        self.record_at(object.object_ref(dyntype), event);
    }

    /// Records that `event` happened to the object that `regarding` names.
    pub fn record_at(&self, regarding: ObjectReference, event: Event) {
        if self.0.try_send(Report { regarding, event }).is_err() {
            tracing::debug!("Event dropped: too many are waiting");
        }
    }
}

async fn send_all(client: Client, mut book: Book, mut reports: mpsc::Receiver<Report>) {
    while let Some(report) = reports.recv().await {
        let Some(sending) = book.enter(report) else { continue };
        let namespace = sending.namespace().to_owned();
        let api: Api<CoreEvent> = Api::namespaced(client.clone(), &namespace);
        let sent = match &sending {
            Sending::New(event) => api.create(&PostParams::default(), event).await.map(drop),
            Sending::Again { name, count, last, .. } => {
                let patch = json!({"count": count, "lastTimestamp": Time(*last)});
                api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
            }
        };
        if let Err(error) = sent {
            // An event that cannot be merged any more (its time to live is over) starts anew with the next one.
            book.forget(sending.name());
            tracing::debug!(%error, "Event not sent");
        }
    }
}

/// What was sent, and what may be sent still.
struct Book {
    clock: Clock,
    component: String,
    known: HashMap<(ObjectId, Event), Known>,
    budgets: HashMap<ObjectId, Budget>,
}

type ObjectId = (Option<String>, Option<String>, Option<String>);

struct Known {
    name: String,
    count: i32,
    last: Timestamp,
}

struct Budget {
    tokens: f64,
    at: Duration,
}

#[derive(Debug)]
enum Sending {
    New(Box<CoreEvent>),
    Again { namespace: String, name: String, count: i32, last: Timestamp },
}

impl Sending {
    fn namespace(&self) -> &str {
        match self {
            Self::New(event) => event.metadata.namespace.as_deref().unwrap_or("default"),
            Self::Again { namespace, .. } => namespace,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::New(event) => event.metadata.name.as_deref().unwrap_or_default(),
            Self::Again { name, .. } => name,
        }
    }
}

impl Book {
    fn enter(&mut self, report: Report) -> Option<Sending> {
        let now = self.clock.now();
        let object = (report.regarding.uid.clone(), report.regarding.namespace.clone(), report.regarding.name.clone());
        if !self.spend(object.clone()) {
            return None;
        }
        let oldest = now - REMEMBERED_FOR;
        if self.known.len() >= REMEMBERED_MAX {
            self.known.retain(|_, known| known.last > oldest);
        }
        // Events of cluster-scoped objects live in the default namespace.
        let namespace = report.regarding.namespace.clone().unwrap_or_else(|| "default".into());
        let key = (object, report.event.clone());
        if let Some(known) = self.known.get_mut(&key).filter(|known| known.last > oldest) {
            known.count += 1;
            known.last = now;
            return Some(Sending::Again { namespace, name: known.name.clone(), count: known.count, last: now });
        }
        let event = self.event(report, namespace, now);
        let name = event.metadata.name.clone().unwrap_or_default();
        self.known.insert(key, Known { name, count: 1, last: now });
        Some(Sending::New(Box::new(event)))
    }

    fn forget(&mut self, name: &str) {
        self.known.retain(|_, known| known.name != name);
    }

    fn spend(&mut self, object: ObjectId) -> bool {
        let now = self.clock.elapsed();
        if self.budgets.len() >= REMEMBERED_MAX {
            self.budgets.retain(|_, budget| budget.refilled(now) < BURST);
        }
        let budget = self.budgets.entry(object).or_insert(Budget { tokens: BURST, at: now });
        budget.tokens = budget.refilled(now);
        budget.at = now;
        let affordable = budget.tokens >= 1.0;
        if affordable {
            budget.tokens -= 1.0;
        }
        affordable
    }

    fn event(&self, report: Report, namespace: String, now: Timestamp) -> CoreEvent {
        let object_name = report.regarding.name.clone().unwrap_or_default();
        CoreEvent {
            metadata: ObjectMeta {
                // In the order of their names, which is how they are listed, events tell a story.
                name: Some(format!("{object_name}.{:016x}", Timestamp::now().as_nanosecond())),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            involved_object: report.regarding,
            type_: Some(report.event.severity.as_str().to_owned()),
            reason: Some(report.event.reason),
            message: Some(report.event.message),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource { component: Some(self.component.clone()), host: None }),
            reporting_component: Some(self.component.clone()),
            ..CoreEvent::default()
        }
    }
}

impl Budget {
    fn refilled(&self, now: Duration) -> f64 {
        let gained = now.saturating_sub(self.at).as_secs_f64() / REFILL.as_secs_f64();
        (self.tokens + gained).min(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, message: &str) -> Report {
        let regarding = ObjectReference {
            name: Some(name.into()),
            namespace: Some("a".into()),
            uid: Some(name.into()),
            ..ObjectReference::default()
        };
        Report { regarding, event: Event::normal("Updated", message) }
    }

    fn book(clock: &Clock) -> Book {
        Book { clock: clock.clone(), component: "test".into(), known: HashMap::new(), budgets: HashMap::new() }
    }

    #[test]
    fn a_repetition_counts_up_and_another_message_is_another_event() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut book = book(&clock);
        assert!(matches!(book.enter(report("x", "one")), Some(Sending::New(_))));
        assert!(matches!(book.enter(report("x", "one")), Some(Sending::Again { count: 2, .. })));
        assert!(matches!(book.enter(report("x", "two")), Some(Sending::New(_))));
        clock.advance(REMEMBERED_FOR);
        assert!(matches!(book.enter(report("x", "one")), Some(Sending::New(_))));
    }

    #[test]
    fn a_noisy_object_is_silenced_alone_and_not_for_ever() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut book = book(&clock);
        let sent = (0..100).filter(|_| book.enter(report("noisy", "again")).is_some()).count();
        assert_eq!(sent, 25);
        assert!(book.enter(report("quiet", "once")).is_some());
        clock.advance(REFILL);
        assert!(book.enter(report("noisy", "again")).is_some());
        assert!(book.enter(report("noisy", "again")).is_none());
    }
}
