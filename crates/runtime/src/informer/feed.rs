//! A cache and those who want to hear of its changes.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;
use tokio::sync::watch;

use super::Informer;
use super::wire::Wire;
use crate::cache::{Cache, Change, Kept};
use crate::key::ObjectKey;
use crate::object::Object;

/// Keeps a listener on an informer, and the informer running.
pub struct Subscription(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscription")
    }
}

pub(super) type Listener<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

/// The cache of an informer, how far its watches are, and its listeners.
pub(super) struct Feed<K: Object> {
    pub(super) cache: Cache<K>,
    pub(super) progress: watch::Sender<Progress>,
    listeners: Mutex<Vec<(u64, Listener<K>)>>,
    /// Held while a change is taken in and told: the watch and the answers to own writes arrive on different threads, and
    /// a listener that keeps a state of its own must not hear of a life after its end.
    order: Mutex<()>,
}

/// How far the watches of an informer are: one for each namespace, or one for all.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Whether it is known which watches there are.
    pub(super) begun: bool,
    pub(super) legs: BTreeMap<Option<String>, Leg>,
}

/// How far one watch is.
#[derive(Clone, Debug, Default)]
pub(super) struct Leg {
    pub(super) listed: bool,
    pub(super) trouble: Option<String>,
}

impl Progress {
    /// Whether every watch has listed.
    pub(super) fn is_synced(&self) -> bool {
        self.begun && self.legs.values().all(|leg| leg.listed)
    }

    /// Whether every watch has listed or failed.
    pub(super) fn is_settled(&self) -> bool {
        self.begun && self.legs.values().all(|leg| leg.listed || leg.trouble.is_some())
    }

    /// Why the objects of `namespace` (all, if `None`) are not known.
    pub(super) fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        if !self.begun {
            return Some(NOT_LISTED.to_owned());
        }
        let concerns = |leg: &Option<String>| leg.is_none() || namespace.is_none() || leg.as_deref() == namespace;
        let blind = self.legs.iter().find(|(name, leg)| concerns(name) && !leg.listed)?;
        Some(blind.1.trouble.clone().unwrap_or_else(|| NOT_LISTED.to_owned()))
    }
}

/// What is wrong with a watch at its start.
pub(super) const NOT_LISTED: &str = "has not listed yet";

/// A feed of any kind, as its watches see it.
pub(super) trait Intake: Send + Sync {
    /// Takes in what the watch of `namespace`, or of all, tells.
    fn observe(&self, namespace: Option<&str>, event: Event<Wire>) -> Result<(), Unreadable>;
    /// Takes in that `namespace` is watched no longer.
    fn leave(&self, namespace: &str);
    fn progress(&self) -> &watch::Sender<Progress>;
}

/// An object that is not what its type says; it is left out.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) key: ObjectKey,
    pub(super) why: serde_json::Error,
}

impl<K: Object> Intake for Feed<K> {
    fn observe(&self, namespace: Option<&str>, event: Event<Wire>) -> Result<(), Unreadable> {
        match event {
            // The echo of an own write, as a rule.
            Event::Apply(wire) if self.cache.is_known(wire.head()) => return Ok(()),
            Event::InitApply(wire) if self.cache.relist(namespace, wire.head()) => return Ok(()),
            Event::Apply(wire) => {
                let kept = self.read(&wire)?;
                self.change(|cache| cache.observe_in(namespace, Event::Apply(kept)));
            }
            Event::InitApply(wire) => {
                let kept = self.read(&wire)?;
                self.change(|cache| cache.observe_in(namespace, Event::InitApply(kept)));
            }
            Event::Delete(wire) => self.change(|cache| cache.vanished(wire.head())),
            Event::Init => self.change(|cache| cache.observe_in(namespace, Event::Init)),
            Event::InitDone => self.change(|cache| cache.observe_in(namespace, Event::InitDone)),
        }
        Ok(())
    }

    fn leave(&self, namespace: &str) {
        self.progress.send_modify(|progress| drop(progress.legs.remove(&Some(namespace.to_owned()))));
        self.change(|cache| cache.leave(namespace));
    }

    fn progress(&self) -> &watch::Sender<Progress> {
        &self.progress
    }
}

impl<K: Object> Feed<K> {
    pub(super) fn new(field_manager: String, is_compact: bool) -> Self {
        Self {
            cache: Cache::of(field_manager, is_compact),
            progress: watch::Sender::default(),
            listeners: Mutex::default(),
            order: Mutex::default(),
        }
    }

    fn read(&self, wire: &Wire) -> Result<Kept<K>, Unreadable> {
        self.cache.keep_text(wire.text()).map_err(|why| {
            let key = wire.key();
            self.change(|cache| cache.unreadable(&key));
            Unreadable { key, why }
        })
    }

    fn add(&self, listener: Listener<K>) -> u64 {
        let _order = self.order();
        let id = {
            let mut listeners = self.listeners.lock().expect("listeners do not run under this lock");
            let id = listeners.last().map_or(0, |(id, _)| id + 1);
            listeners.push((id, listener.clone()));
            id
        };
        for change in self.cache.tell_all() {
            listener(&change);
        }
        id
    }

    /// Takes a change in and tells of it. Listeners hear changes in the order in which the cache took them in.
    pub(super) fn change<C: IntoIterator<Item = Change<K>>>(&self, act: impl FnOnce(&Cache<K>) -> C) {
        let _order = self.order();
        self.tell(act(&self.cache));
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        // A listener that panicked has not harmed what this lock guards.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, changes: impl IntoIterator<Item = Change<K>>) {
        let listeners: Vec<_> = {
            let listeners = self.listeners.lock().expect("listeners do not run under this lock");
            listeners.iter().map(|(_, listener)| listener.clone()).collect()
        };
        for change in changes {
            for listener in &listeners {
                listener(&change);
            }
        }
    }
}

impl<K: Object> std::fmt::Debug for Feed<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("objects", &self.cache.len()).finish_non_exhaustive()
    }
}

impl<K: Object> Informer<K> {
    /// Calls `listener` for every change from now on, after telling it of all objects that are known already.
    /// It runs inside the watch: keep it short.
    pub fn subscribe(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) -> Subscription {
        let id = self.0.feed.add(Arc::new(listener));
        Subscription(Box::new(Subscribed { informer: self.clone(), id }))
    }
}

struct Subscribed<K: Object> {
    informer: Informer<K>,
    id: u64,
}

impl<K: Object> Drop for Subscribed<K> {
    fn drop(&mut self) {
        let mut listeners = self.informer.0.feed.listeners.lock().expect("listeners do not run under this lock");
        listeners.retain(|(id, _)| *id != self.id);
    }
}
