//! What happens to an object between its author and the store: plugins that complete it, then plugins that refuse it.
//!
//! [`Admission::mutate`] runs after decoding and defaulting, [`Admission::validate`] after validation, right before the
//! commit. Webhooks come at the end of each of the two.

mod criteria;
mod escalation;
mod exchange;
pub(crate) mod expressions;
mod form;
mod hook;
mod hooks;
mod limit_range;
mod matching;
mod namespace;
mod node;
mod plugin;
mod pod;
mod policies;
mod priority;
mod quota;
mod registrations;
mod reinvocation;
mod resize;
mod review;
mod runtime_class;
mod service_account;
mod storage;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use windlass_store::Store;

use crate::ApiError;
use crate::auth::Auth;
use crate::registry::Registry;
use crate::webhook::Webhooks;
use hooks::Hooks;
use policies::Policies;
use registrations::{Registered, Registrations};
use reinvocation::Reinvocation;

use policies::authority;
pub(crate) use policies::keep_status;

pub use plugin::{Plugin, Plugins, UnknownPlugin};
pub(crate) use quota::{Charge, prefix as quota_prefix};
pub use review::{ObjectKind, Operation, Review};

/// The chain of plugins.
#[derive(Debug)]
pub struct Admission {
    store: Store,
    auth: Arc<Auth>,
    plugins: Plugins,
    registrations: Registrations,
    policies: Policies,
    hooks: Hooks,
}

impl Admission {
    /// The chain of `plugins` for the objects in `store`.
    pub(crate) fn new(
        store: Store,
        auth: Arc<Auth>,
        registry: Arc<Registry>,
        webhooks: Arc<Webhooks>,
        plugins: Plugins,
    ) -> Self {
        let registrations = Registrations::new(store.clone());
        let (own, other) = (Arc::clone(&registry), Arc::clone(&webhooks));
        let policies = Policies::new(store.clone(), Arc::clone(&auth), own, other);
        let hooks = Hooks::new(store.clone(), Arc::clone(&auth), registry, webhooks);
        Admission { store, auth, plugins, registrations, policies, hooks }
    }

    /// Lets the plugins and webhooks complete or change the object.
    ///
    /// # Errors
    /// 403 or 404, naming what is missing or not allowed; whatever a webhook answers.
    pub async fn mutate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        let (mut by_policies, mut by_hooks) = (Reinvocation::default(), Reinvocation::default());
        self.complete(review).await?;
        let registered = self.registered(review);
        self.policies.mutate(&registered.mutating_policies, review, &mut by_policies).await?;
        self.hooks.mutate(&registered.mutating, review, &mut by_hooks).await?;
        if by_policies.is_needed() || by_hooks.is_needed() {
            // What was changed, plugins have not seen, and neither have the policies and webhooks before.
            self.complete(review).await?;
            by_policies.begin(&review.object);
            self.policies.mutate(&registered.mutating_policies, review, &mut by_policies).await?;
            by_hooks.begin(&review.object);
            self.hooks.mutate(&registered.mutating, review, &mut by_hooks).await?;
        }
        Ok(())
    }

    /// What is registered now and may see the request: nothing, if it is about what configures admission.
    fn registered(&self, review: &Review<'_>) -> Arc<Registered> {
        if matching::is_exempt(review) { Arc::default() } else { self.registrations.current() }
    }

    async fn complete(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        if self.plugins.has(Plugin::NamespaceLifecycle) {
            namespace::check(&self.store, review)?;
        }
        if self.plugins.has(Plugin::LimitRanger) {
            limit_range::complete(&self.store, review);
        }
        if self.plugins.has(Plugin::ServiceAccount) {
            service_account::complete(&self.store, review).await?;
        }
        if self.plugins.has(Plugin::DefaultTolerationSeconds) {
            pod::tolerate_node_problems(review);
        }
        if self.plugins.has(Plugin::Priority) {
            priority::resolve(&self.store, review)?;
        }
        if self.plugins.has(Plugin::RuntimeClass) {
            runtime_class::resolve(&self.store, review)?;
        }
        if self.plugins.has(Plugin::DefaultStorageClass) {
            storage::choose_class(&self.store, review);
        }
        if self.plugins.has(Plugin::StorageObjectInUseProtection) {
            storage::protect(review);
        }
        if self.plugins.has(Plugin::TaintNodesByCondition) {
            node::taint_new(review);
        }
        Ok(())
    }

    /// Lets the plugins and webhooks refuse the object in its final form.
    ///
    /// # Errors
    /// 403, naming what is not allowed; whatever a webhook answers.
    pub async fn validate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        escalation::check(&self.auth, review)?;
        if self.plugins.has(Plugin::NamespaceLifecycle) {
            namespace::check(&self.store, review)?;
        }
        if self.plugins.has(Plugin::LimitRanger) {
            limit_range::check(&self.store, review)?;
        }
        if self.plugins.has(Plugin::Priority) {
            priority::check_class(&self.store, review)?;
        }
        if self.plugins.has(Plugin::PersistentVolumeClaimResize) {
            storage::check_growth(&self.store, review)?;
        }
        if self.plugins.has(Plugin::PodResizeValidator) {
            resize::check(&self.store, review)?;
        }
        let registered = self.registered(review);
        self.policies.validate(&registered.validating_policies, review).await?;
        self.hooks.validate(&registered.validating, review).await
    }
}

/// The stored object at `key`, in the form that a plugin wants; `None` if it is not there or not readable.
fn stored<T: DeserializeOwned>(store: &Store, key: &str) -> Option<T> {
    serde_json::from_slice(&store.snapshot().get(key)?.value).ok()
}

/// All stored objects under `prefix`, in the form that a plugin wants.
fn all_stored<T: DeserializeOwned>(store: &Store, prefix: &str) -> Vec<T> {
    let snapshot = store.snapshot();
    snapshot.range(prefix, None).filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok()).collect()
}
