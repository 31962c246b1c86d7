//! The webhooks that are registered, kept up to date with the commits of the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use windlass_store::{Store, Watch};

use super::hook::Hook;

const PREFIX: &str = "/admissionregistration.k8s.io/";
const MUTATING: &str = "/admissionregistration.k8s.io/mutatingwebhookconfigurations/";
const VALIDATING: &str = "/admissionregistration.k8s.io/validatingwebhookconfigurations/";

/// What is registered at one moment, in the order in which it is called.
#[derive(Debug, Default)]
pub(super) struct Registered {
    pub(super) mutating: Vec<Arc<Hook>>,
    pub(super) validating: Vec<Arc<Hook>>,
}

/// Reads what is registered.
///
/// Guarantees: an answer knows every commit that was acknowledged before the question. Nothing runs between questions.
#[derive(Debug)]
pub(super) struct Registrations {
    store: Store,
    cached: Mutex<Option<Cached>>,
}

#[derive(Debug)]
struct Cached {
    /// The webhooks of each configuration, by its key.
    hooks: BTreeMap<String, Vec<Arc<Hook>>>,
    registered: Arc<Registered>,
    watch: Watch,
}

impl Registrations {
    pub(super) fn new(store: Store) -> Self {
        Self { store, cached: Mutex::default() }
    }

    /// What is registered now.
    pub(super) fn current(&self) -> Arc<Registered> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let current = match cached.take().and_then(Cached::caught_up) {
            Some(current) => current,
            None => Cached::load(&self.store),
        };
        Arc::clone(&cached.insert(current).registered)
    }
}

impl Cached {
    fn load(store: &Store) -> Self {
        loop {
            let snapshot = store.snapshot();
            // The past is compacted only when thousands of commits fit between these two lines.
            let Ok(watch) = store.watch(PREFIX, snapshot.revision()) else { continue };
            let mut cached = Cached { hooks: BTreeMap::new(), registered: Arc::default(), watch };
            for (key, entry) in snapshot.range(PREFIX, None) {
                cached.apply(key, Some(&entry.value));
            }
            cached.arrange();
            return cached;
        }
    }

    /// With all commits until now; `None` if the watch fell behind.
    fn caught_up(mut self) -> Option<Self> {
        let mut changed = false;
        while let Some(event) = self.watch.try_next() {
            let event = event.ok()?;
            self.apply(&event.key, event.entry.as_ref().map(|entry| entry.value.as_ref()));
            changed = true;
        }
        if changed {
            self.arrange();
        }
        Some(self)
    }

    fn apply(&mut self, key: &str, bytes: Option<&[u8]>) {
        let configuration = bytes.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        match configuration {
            Some(configuration) => {
                let hooks = Hook::all_of(&configuration).into_iter().map(Arc::new).collect();
                self.hooks.insert(key.to_owned(), hooks);
            }
            None => drop(self.hooks.remove(key)),
        }
    }

    /// Keys end with the names of the configurations, so that their order is that of the names.
    fn arrange(&mut self) {
        let under = |prefix: &str| {
            let hooks = self.hooks.iter().filter(|(key, _)| key.starts_with(prefix));
            hooks.flat_map(|(_, hooks)| hooks.iter().cloned()).collect()
        };
        self.registered = Arc::new(Registered { mutating: under(MUTATING), validating: under(VALIDATING) });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_store::Write;

    use super::*;

    #[tokio::test]
    async fn what_is_registered_counts_at_once_and_in_the_order_of_names() {
        let store = Store::in_memory();
        let registrations = Registrations::new(store.clone());
        assert!(registrations.current().validating.is_empty());
        let configuration = |name: &str| {
            let hooks = json!([{"name": format!("1.{name}")}, {"name": format!("0.{name}")}]);
            json!({"metadata": {"name": name}, "webhooks": hooks}).to_string()
        };
        let writes = ["b", "a"].map(|name| Write::create(format!("{VALIDATING}{name}"), configuration(name)));
        let revision = store.commit(writes.into()).await.unwrap();
        let names =
            || -> Vec<String> { registrations.current().validating.iter().map(|hook| hook.raw.name.clone()).collect() };
        assert_eq!(names(), ["1.a", "0.a", "1.b", "0.b"]);
        store.commit(vec![Write::delete(format!("{VALIDATING}a"), revision)]).await.unwrap();
        assert_eq!(names(), ["1.b", "0.b"]);
    }
}
