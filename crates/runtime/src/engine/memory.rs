//! What the engine remembers of a resource between passes. Losing it costs a less precise event, nothing more.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard};

use windlass_core::{Child, Event};

use super::act::Before;
use crate::key::ObjectKey;

/// The memory of all resources of an operator.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<ObjectKey, Past>>);

#[derive(Debug, Default)]
struct Past {
    uid: String,
    /// The hash of what was applied, by kind and name.
    applied: HashMap<(String, String, String), u64>,
    events: Vec<Event>,
}

impl Memory {
    /// What was done to `child` for this owner before.
    pub(crate) fn before(&self, owner: &ObjectKey, uid: &str, child: &Child) -> Before {
        let pasts = self.lock();
        let past = pasts.get(owner).filter(|past| past.uid == uid);
        match past.and_then(|past| past.applied.get(&id(child))) {
            None => Before::New,
            Some(hash) if *hash == hash_of(child) => Before::Same,
            Some(_) => Before::Other,
        }
    }

    /// Remembers what a complete pass applied, and returns the events that the pass before did not have.
    pub(crate) fn passed(&self, owner: &ObjectKey, uid: &str, children: &[Child], events: &[Event]) -> Vec<Event> {
        let mut pasts = self.lock();
        let past = pasts.entry(owner.clone()).or_default();
        if past.uid != uid {
            *past = Past { uid: uid.to_owned(), ..Past::default() };
        }
        past.applied = children.iter().map(|child| (id(child), hash_of(child))).collect();
        let news = events.iter().filter(|event| !past.events.contains(event)).cloned().collect();
        past.events = events.to_vec();
        news
    }

    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.lock().remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Past>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

fn id(child: &Child) -> (String, String, String) {
    (child.resource.group.clone(), child.resource.kind.clone(), child.name.clone())
}

fn hash_of(child: &Child) -> u64 {
    let mut hasher = DefaultHasher::new();
    child.object.to_string().hash(&mut hasher);
    hasher.finish()
}
