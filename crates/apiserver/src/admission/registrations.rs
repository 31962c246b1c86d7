//! The webhooks and policies that are registered, kept up to date with the commits of the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use windlass_store::{Store, Watch};

use super::{
    hook::Hook,
    policies::{Binding, Bound, Policy},
};

const PREFIX: &str = "/admissionregistration.k8s.io/";
const MUTATING: &str = "/admissionregistration.k8s.io/mutatingwebhookconfigurations/";
const VALIDATING: &str = "/admissionregistration.k8s.io/validatingwebhookconfigurations/";

const VALIDATING_POLICIES: &str = "/admissionregistration.k8s.io/validatingadmissionpolicies/";
const VALIDATING_BINDINGS: &str = "/admissionregistration.k8s.io/validatingadmissionpolicybindings/";
const MUTATING_POLICIES: &str = "/admissionregistration.k8s.io/mutatingadmissionpolicies/";
const MUTATING_BINDINGS: &str = "/admissionregistration.k8s.io/mutatingadmissionpolicybindings/";

/// What is registered at one moment, in the order in which it is called.
#[derive(Debug, Default)]
pub(super) struct Registered {
    pub(super) mutating: Vec<Arc<Hook>>,
    pub(super) validating: Vec<Arc<Hook>>,
    pub(super) mutating_policies: Vec<Bound>,
    pub(super) validating_policies: Vec<Bound>,
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
    policies: BTreeMap<String, Arc<Policy>>,
    bindings: BTreeMap<String, Arc<Binding>>,
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
            let mut cached = Cached {
                hooks: BTreeMap::new(),
                policies: BTreeMap::new(),
                bindings: BTreeMap::new(),
                registered: Arc::default(),
                watch,
            };
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
        self.hooks.remove(key);
        self.policies.remove(key);
        self.bindings.remove(key);
        let Some(object) = configuration else { return };
        let is_under = |prefixes: [&str; 2]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        if is_under([MUTATING, VALIDATING]) {
            self.hooks.insert(key.to_owned(), Hook::all_of(&object).into_iter().map(Arc::new).collect());
        } else if is_under([MUTATING_POLICIES, VALIDATING_POLICIES]) {
            self.policies.insert(key.to_owned(), Arc::new(Policy::read(&object)));
        } else if is_under([MUTATING_BINDINGS, VALIDATING_BINDINGS]) {
            self.bindings.insert(key.to_owned(), Arc::new(Binding::read(&object)));
        }
    }

    /// The policies under a prefix that are bound, with what binds them.
    fn bound(&self, policies: &str, bindings: &str) -> Vec<Bound> {
        let policies = self.policies.iter().filter_map(|(key, policy)| Some((key.strip_prefix(policies)?, policy)));
        let bound = policies.map(|(name, policy)| {
            let bindings =
                self.bindings.iter().filter(|(key, binding)| key.starts_with(bindings) && binding.policy == name);
            (Arc::clone(policy), bindings.map(|(_, binding)| Arc::clone(binding)).collect::<Vec<_>>())
        });
        bound.filter(|(_, bindings)| !bindings.is_empty()).collect()
    }

    /// Keys end with the names of the configurations, so that their order is that of the names.
    fn arrange(&mut self) {
        let under = |prefix: &str| {
            let hooks = self.hooks.iter().filter(|(key, _)| key.starts_with(prefix));
            hooks.flat_map(|(_, hooks)| hooks.iter().cloned()).collect()
        };
        self.registered = Arc::new(Registered {
            mutating: under(MUTATING),
            validating: under(VALIDATING),
            mutating_policies: self.bound(MUTATING_POLICIES, MUTATING_BINDINGS),
            validating_policies: self.bound(VALIDATING_POLICIES, VALIDATING_BINDINGS),
        });
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
