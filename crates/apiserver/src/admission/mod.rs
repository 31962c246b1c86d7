//! What happens to an object between its author and the store: plugins that complete it, then plugins that refuse it.
//!
//! [`Admission::mutate`] runs after decoding and defaulting, [`Admission::validate`] after validation, right before the
//! commit. Webhooks and policies belong at the end of each of the two.

mod escalation;
mod limit_range;
mod namespace;
mod plugin;
mod pod;
mod priority;
mod quota;
mod review;
mod service_account;
mod storage;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use windlass_store::Store;

use crate::ApiError;
use crate::auth::Auth;

pub use plugin::{Plugin, Plugins, UnknownPlugin};
pub(crate) use quota::{Charge, prefix as quota_prefix};
pub use review::{Operation, Review};

/// The chain of plugins.
#[derive(Clone, Debug)]
pub struct Admission {
    store: Store,
    auth: Arc<Auth>,
    plugins: Plugins,
}

impl Admission {
    /// The chain of `plugins` for the objects in `store`.
    pub fn new(store: Store, auth: Arc<Auth>, plugins: Plugins) -> Self {
        Admission { store, auth, plugins }
    }

    /// Lets the plugins complete or change the object.
    ///
    /// # Errors
    /// 403 or 404, naming what is missing or not allowed.
    pub async fn mutate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
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
        if self.plugins.has(Plugin::DefaultStorageClass) {
            storage::choose_class(&self.store, review);
        }
        if self.plugins.has(Plugin::StorageObjectInUseProtection) {
            storage::protect(review);
        }
        Ok(())
    }

    /// Lets the plugins refuse the object in its final form.
    ///
    /// # Errors
    /// 403, naming what is not allowed.
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
        Ok(())
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
