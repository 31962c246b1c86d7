//! The containers that run at the moment, for those who want something of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::console::Console;
use super::inside::Inside;

/// The containers that run, by the uid of their Pod and their name.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveContainers(Arc<Mutex<Known>>);

type Known = HashMap<(String, String), Arc<Live>>;

/// A container that runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) inside: Inside,
    pub(crate) console: Arc<Console>,
}

/// A container is found while this lives.
#[derive(Debug)]
pub(crate) struct Entry {
    all: LiveContainers,
    key: (String, String),
}

impl LiveContainers {
    /// Makes a container known.
    pub(crate) fn enter(&self, uid: &str, live: Live) -> Entry {
        let key = (uid.to_owned(), live.inside.container.name.clone());
        self.lock().insert(key.clone(), Arc::new(live));
        Entry { all: self.clone(), key }
    }

    /// The container of a Pod, if it runs.
    pub(crate) fn find(&self, uid: &str, name: &str) -> Option<Arc<Live>> {
        self.lock().get(&(uid.to_owned(), name.to_owned())).cloned()
    }

    /// The containers of a Pod that run.
    pub(crate) fn of(&self, uid: &str) -> Vec<Arc<Live>> {
        self.lock().iter().filter(|((owner, _), _)| owner == uid).map(|(_, live)| Arc::clone(live)).collect()
    }

    /// How many containers run.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Every container that runs, with the uid of its Pod and its name.
    pub(crate) fn all(&self) -> Vec<((String, String), Arc<Live>)> {
        self.lock().iter().map(|(key, live)| (key.clone(), Arc::clone(live))).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}
