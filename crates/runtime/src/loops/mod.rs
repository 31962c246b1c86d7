//! Notices writes that undo each other: a fight over a field, or a field that is new in every pass.

mod compare;
mod ledger;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::Value;
use windlass_core::Event;

pub(crate) use self::compare::{FieldChange, changed};
use self::ledger::{Flap, Ledger, ObjectId};
use crate::events::Recorder;
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::tap::Call;
use windlass_clock::Clock;

/// A resource in a loop is acted on at most this often.
const COOL_DOWN: Duration = Duration::from_secs(30);

/// The watch over loops of one cluster; clones are the same.
#[derive(Clone)]
pub(crate) struct Loops(Arc<Inner>);

struct Inner {
    clock: Clock,
    metrics: Metrics,
    events: Recorder,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    /// Loops by the uid of the object, and of the one that controls it.
    hot: HashMap<String, Hot>,
}

/// A loop that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hot {
    /// Which field, and how.
    pub(crate) message: String,
    /// The same without values.
    pub(crate) field: String,
    /// When the next act is due.
    pub(crate) until: Duration,
}

impl Loops {
    pub(crate) fn new(clock: Clock, metrics: Metrics, events: Recorder) -> Self {
        Self(Arc::new(Inner { clock, metrics, events, state: Mutex::default() }))
    }

    /// Takes in an own write and its answer. `changes` are what it changed, if that is known.
    pub(crate) fn wrote(&self, call: &Call, answer: &[u8], changes: impl FnOnce() -> Option<Vec<FieldChange>>) {
        let Some(key) = changed_object(call) else { return };
        let object = ObjectId::of(&call.group, &call.resource, &key);
        let now = self.0.clock.elapsed();
        if !self.lock().ledger.is_busy(object, now) {
            return;
        }
        let Some(changes) = changes() else { return };
        let Some(flap) = self.lock().ledger.enter(object, changes, now) else { return };
        self.report(answer, &flap, now);
    }

    /// What is known of a loop of the object with this uid, or of one that it controls.
    pub(crate) fn hot(&self, uid: &str) -> Option<Hot> {
        let now = self.0.clock.elapsed();
        self.lock().hot.get(uid).filter(|hot| hot.until > now).cloned()
    }

    fn report(&self, answer: &[u8], flap: &Flap, now: Duration) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let kind = text("/kind").unwrap_or_default();
        let name = text("/metadata/name").unwrap_or_default();
        let (message, field) = (flap.describe(&kind, &name), flap.field(&kind, &name));
        let owners = answer["metadata"]["ownerReferences"].as_array();
        let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
        let uids = [answer["metadata"]["uid"].as_str(), controller.and_then(|owner| owner["uid"].as_str())];
        {
            let mut state = self.lock();
            state.hot.retain(|_, hot| hot.until > now);
            for uid in uids.into_iter().flatten() {
                let hot = Hot { message: message.clone(), field: field.clone(), until: now + COOL_DOWN };
                state.hot.insert(uid.to_owned(), hot);
            }
        }
        tracing::warn!(kind, "Hot loop: {message}");
        self.0.metrics.hot_loop(&kind);
        let regarding = ObjectReference {
            api_version: text("/apiVersion"),
            kind: Some(kind),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            ..ObjectReference::default()
        };
        self.0.events.record_at(regarding, Event::warning("HotLoop", message));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no code that can panic runs under this lock")
    }
}

/// The object that a call changes in place, if it does.
pub(crate) fn changed_object(call: &Call) -> Option<ObjectKey> {
    let is_change = matches!(call.verb, "update" | "patch") && matches!(call.subresource.as_str(), "" | "status");
    let name = call.name.clone().filter(|_| is_change)?;
    Some(ObjectKey { namespace: call.namespace.clone(), name })
}
