//! How far an object is: ready, on its way, or failed.

mod objects;
mod workloads;

use std::any::Any;

use kube::Resource;
use serde::Serialize;

/// How far an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// What needs it can begin.
    Ready,
    /// It is on its way: what is missing, for people.
    NotYet(String),
    /// It will not become ready by itself: why, for people.
    Failed(String),
}

impl Readiness {
    /// Ready if `ready`, otherwise not yet, because of `missing`.
    pub fn when(ready: bool, missing: impl Into<String>) -> Self {
        if ready { Self::Ready } else { Self::NotYet(missing.into()) }
    }

    /// Whether it is ready.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }

    /// What is known of the object's kind: workloads are ready when they are rolled out, Jobs when they are complete, Pods
    /// when they serve or have succeeded, claims when they are bound, Services when they have an address, definitions when
    /// they are served, and objects of other groups when they say so by a condition `Ready`. Other objects of Kubernetes
    /// itself are ready when they are there.
    pub fn of<K: Resource<DynamicType = ()> + Serialize + 'static>(object: &K) -> Self {
        if object.meta().deletion_timestamp.is_some() {
            return Self::NotYet("it is being deleted".into());
        }
        let known = standard(object);
        known.unwrap_or_else(|| {
            if objects::is_of_kubernetes(&K::group(&())) { Self::Ready } else { objects::custom(object) }
        })
    }
}

/// The readiness of a kind that has rules of its own.
fn standard(object: &dyn Any) -> Option<Readiness> {
    by(object, workloads::deployment)
        .or_else(|| by(object, workloads::stateful_set))
        .or_else(|| by(object, workloads::daemon_set))
        .or_else(|| by(object, workloads::replica_set))
        .or_else(|| by(object, workloads::job))
        .or_else(|| by(object, workloads::pod))
        .or_else(|| by(object, objects::claim))
        .or_else(|| by(object, objects::service))
        .or_else(|| by(object, objects::definition))
}

fn by<K: 'static>(object: &dyn Any, judge: fn(&K) -> Readiness) -> Option<Readiness> {
    object.downcast_ref::<K>().map(judge)
}

#[cfg(test)]
mod tests;
