//! A kind that an operator declares, and what for.

use kube::core::ApiResource;

use crate::object::Object;
use crate::owners::is_cluster_scoped;

/// What an operator does with a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Makes, changes and removes its objects.
    Owns,
    /// Looks at its objects.
    Reads,
}

/// A kind that an operator uses.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The kind.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What for.
    pub usage: Use,
}

impl Declared {
    /// The use of a kind that is known at compile time.
    pub fn of<K: Object<DynamicType = ()>>(usage: Use) -> Self {
        Self { resource: ApiResource::erase::<K>(&()), namespaced: !is_cluster_scoped::<K>(), usage }
    }
}
