//! The Pods that found no node and wait for a change.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use windlass_runtime::{Informer, ObjectKey};

use super::loads::priority;
use super::neighbours;
use crate::volume::claims_of;

/// Pods that wait, and whether it matters to them who is beside them.
pub(crate) struct Waiting {
    pods: Informer<Pod>,
    keys: Mutex<HashMap<ObjectKey, bool>>,
}

impl Waiting {
    /// Nobody waits yet; `pods` knows how important each is.
    pub(crate) fn new(pods: Informer<Pod>) -> Self {
        Self { pods, keys: Mutex::default() }
    }

    /// The Pod waits.
    pub(crate) fn add(&self, pod: &Pod) {
        let spreads = pod.spec.as_ref().is_some_and(|spec| spec.topology_spread_constraints.is_some());
        self.keys().insert(ObjectKey::of(pod), spreads || neighbours::is_choosy(pod));
    }

    /// The Pod waits no longer.
    pub(crate) fn remove(&self, pod: &Pod) {
        self.keys().remove(&ObjectKey::of(pod));
    }

    /// All that wait, the important first; whoever still finds nothing waits again.
    pub(crate) fn all(&self) -> Vec<ObjectKey> {
        let keys = std::mem::take(&mut *self.keys());
        self.ordered(keys.into_keys())
    }

    /// Those to whom their neighbours matter.
    pub(crate) fn choosy(&self) -> Vec<ObjectKey> {
        let keys: Vec<ObjectKey> = {
            let mut keys = self.keys();
            keys.extract_if(|_, choosy| *choosy).map(|(key, _)| key).collect()
        };
        self.ordered(keys.into_iter())
    }

    /// Those that wait for their claims.
    pub(crate) fn with_claims(&self) -> Vec<ObjectKey> {
        let all: Vec<ObjectKey> = self.keys().keys().cloned().collect();
        let has_claims = |key: &ObjectKey| self.pods.get(key).is_some_and(|pod| claims_of(&pod).next().is_some());
        let waiting: Vec<ObjectKey> = all.into_iter().filter(has_claims).collect();
        let mut keys = self.keys();
        keys.retain(|key, _| !waiting.contains(key));
        drop(keys);
        self.ordered(waiting.into_iter())
    }

    fn ordered(&self, keys: impl Iterator<Item = ObjectKey>) -> Vec<ObjectKey> {
        let mut pods: Vec<(ObjectKey, _)> = keys.filter_map(|key| self.pods.get(&key).map(|pod| (key, pod))).collect();
        pods.sort_by_cached_key(|(_, pod)| (Reverse(priority(pod)), pod.creation_timestamp(), pod.name_any()));
        pods.into_iter().map(|(key, _)| key).collect()
    }

    fn keys(&self) -> MutexGuard<'_, HashMap<ObjectKey, bool>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
