//! The policy of a store, kept up to date with its commits.

use std::sync::{Mutex, PoisonError};

use windlass_store::{Store, Watch};

use super::Policy;
use crate::auth::{Attributes, User};

/// Answers questions about rights from the roles and bindings in a store.
///
/// Guarantees: an answer knows every commit that was acknowledged before the question. Nothing runs between questions.
#[derive(Debug)]
pub struct Authorizer {
    store: Store,
    cached: Mutex<Option<Cached>>,
    allow_all: bool,
}

#[derive(Debug)]
struct Cached {
    policy: Policy,
    watch: Watch,
}

impl Authorizer {
    /// An authorizer over the roles and bindings in `store`.
    pub fn new(store: Store) -> Self {
        Authorizer { store, cached: Mutex::new(None), allow_all: false }
    }

    /// An authorizer that allows everything to everybody, whatever the roles say.
    pub fn allow_all(store: Store) -> Self {
        Authorizer { allow_all: true, ..Self::new(store) }
    }

    /// Whether `user` may do what `attributes` describe.
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        self.allow_all || user.is_master() || self.ask(|policy| policy.allows(user, attributes))
    }

    /// Asks the policy as it is now.
    pub fn ask<T>(&self, question: impl FnOnce(&Policy) -> T) -> T {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let current = match cached.take().and_then(Cached::caught_up) {
            Some(current) => current,
            None => Cached::load(&self.store),
        };
        question(&cached.insert(current).policy)
    }
}

impl Cached {
    fn load(store: &Store) -> Self {
        loop {
            let snapshot = store.snapshot();
            // The past is compacted only when thousands of commits fit between these two lines.
            let Ok(watch) = store.watch(Policy::PREFIX, snapshot.revision()) else { continue };
            let mut policy = Policy::default();
            for (key, entry) in snapshot.range(Policy::PREFIX, None) {
                policy.apply(key, Some(&entry.value));
            }
            return Cached { policy, watch };
        }
    }

    /// With all commits until now; `None` if the watch fell behind.
    fn caught_up(mut self) -> Option<Self> {
        while let Some(event) = self.watch.try_next() {
            let event = event.ok()?;
            self.policy.apply(&event.key, event.entry.as_ref().map(|entry| entry.value.as_ref()));
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::rbac::GROUP;
    use serde_json::json;
    use windlass_store::Write;

    #[tokio::test]
    async fn an_answer_knows_every_commit_before_it() {
        let store = Store::in_memory();
        let authorizer = Authorizer::new(store.clone());
        let ann = User::new("ann", ["people"]);
        let attributes = Attributes::path("get", "/metrics");
        assert!(!authorizer.allows(&ann, &attributes));

        let role = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]});
        let binding = json!({
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "scraper"},
            "subjects": [{"kind": "Group", "name": "people"}],
        });
        let binding_key = format!("{}clusterrolebindings/scraper", Policy::PREFIX);
        let writes = vec![
            Write::create(format!("{}clusterroles/scraper", Policy::PREFIX), role.to_string()),
            Write::create(binding_key.clone(), binding.to_string()),
        ];
        let revision = store.commit(writes).await.unwrap();
        assert!(authorizer.allows(&ann, &attributes));

        store.commit(vec![Write::delete(binding_key, revision)]).await.unwrap();
        assert!(!authorizer.allows(&ann, &attributes));
    }

    #[tokio::test]
    async fn one_that_fell_behind_reads_everything_again() {
        let store = Store::in_memory();
        let authorizer = Authorizer::new(store.clone());
        let ann = User::new("ann", ["people"]);
        let attributes = Attributes::path("get", "/metrics");
        assert!(!authorizer.allows(&ann, &attributes));

        let key = format!("{}clusterroles/busy", Policy::PREFIX);
        for number in 0..9_000 {
            let value = json!({"number": number}).to_string().into();
            let write = Write { key: key.clone(), expect: windlass_store::Expect::Any, value: Some(value) };
            store.commit(vec![write]).await.unwrap();
        }
        let binding = json!({
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "scraper"},
            "subjects": [{"kind": "User", "name": "ann"}],
        });
        let role = json!({"rules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]});
        let writes = vec![
            Write::create(format!("{}clusterroles/scraper", Policy::PREFIX), role.to_string()),
            Write::create(format!("{}clusterrolebindings/scraper", Policy::PREFIX), binding.to_string()),
        ];
        store.commit(writes).await.unwrap();
        assert!(authorizer.allows(&ann, &attributes));
    }
}
