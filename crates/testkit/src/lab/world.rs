//! The objects of the cluster during a run, after every single change.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_store::{Event, Store, Watch};

use crate::Kind;

/// What is for people and for replicas, and no part of the state.
const OUTSIDE: [&str; 3] = ["/core/events/", "/events.k8s.io/", "/coordination.k8s.io/leases/"];

/// The objects that came since the run began, at one moment. For invariants: see
/// [`Exploration::invariant`](crate::explore::Exploration::invariant).
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<String, Value>,
}

impl World {
    /// All objects of a kind, in order of their names.
    ///
    /// # Panics
    /// If one cannot be read as `K`.
    pub fn all<K: Kind + DeserializeOwned>(&self) -> Vec<K> {
        let prefix = prefix(&K::group(&()), &K::plural(&()));
        let of_kind = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix));
        of_kind.map(|(key, object)| read(key, object)).collect()
    }

    /// The object called `name` in the namespace `default`.
    ///
    /// # Panics
    /// If it cannot be read as `K`.
    pub fn get<K: Kind + DeserializeOwned>(&self, name: &str) -> Option<K> {
        let key = key(&K::group(&()), &K::plural(&()), "default", name);
        self.objects.get(&key).map(|object| read(&key, object))
    }

    pub(crate) fn objects(&self) -> &BTreeMap<String, Value> {
        &self.objects
    }
}

fn read<K: Debug + DeserializeOwned>(key: &str, object: &Value) -> K {
    match serde_json::from_value(object.clone()) {
        Ok(object) => object,
        Err(error) => panic!("{key} cannot be read: {error}"),
    }
}

/// What the keys of a kind begin with.
pub(crate) fn prefix(group: &str, plural: &str) -> String {
    format!("/{}/{plural}/", if group.is_empty() { "core" } else { group })
}

/// The key of an object in the store.
pub(crate) fn key(group: &str, plural: &str, namespace: &str, name: &str) -> String {
    let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("{}{namespace}{name}", prefix(group, plural))
}

/// Follows every commit of the store.
pub(crate) struct Chronicle {
    watch: Watch,
    pub(crate) world: World,
}

/// A change of the world.
pub(crate) struct Change<'a> {
    pub(crate) key: &'a str,
    pub(crate) world: &'a World,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    /// What is stored now, as it is.
    pub(crate) text: &'a str,
}

impl Chronicle {
    pub(crate) fn begin(store: &Store) -> Self {
        let watch = store.watch("/", store.revision()).expect("the present is known");
        Self { watch, world: World::default() }
    }

    /// Takes in all that was committed, one by one. Events for people are told, too, but are no part of the world.
    pub(crate) fn follow(&mut self, mut tell: impl FnMut(&Change<'_>)) {
        while let Some(event) = self.watch.try_next() {
            let event = event.expect("a run makes fewer changes than a watch can hold");
            self.take(&event, &mut tell);
        }
    }

    fn take(&mut self, event: &Event, tell: &mut impl FnMut(&Change<'_>)) {
        let new: Option<Value> =
            event.entry.as_ref().map(|entry| serde_json::from_slice(&entry.value).expect("the API server stores JSON"));
        let mut old = None;
        if is_inside(&event.key) {
            old = match &new {
                Some(object) => self.world.objects.insert(event.key.to_string(), object.clone()),
                None => self.world.objects.remove(&*event.key),
            };
        }
        let text = event.entry.as_ref().map_or("", |entry| std::str::from_utf8(&entry.value).unwrap_or_default());
        tell(&Change { key: &event.key, world: &self.world, old, new, text });
    }
}

/// Whether changes of `key` are part of the state of the world.
pub(crate) fn is_inside(key: &str) -> bool {
    !OUTSIDE.iter().any(|prefix| key.starts_with(prefix))
}
