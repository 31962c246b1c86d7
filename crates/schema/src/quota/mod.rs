//! What ResourceQuotas count: how much an object uses, and which quotas it falls under.

mod claim;
mod names;
mod pod;
mod scope;
mod service;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::quantity::Quantity;

pub use names::is_standard;
pub use scope::Scope;

/// Amounts by the names of their resources.
pub type Amounts = BTreeMap<String, Quantity>;

/// How the objects of one resource are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting<'a> {
    /// Pods: they and what they ask for.
    Pods,
    /// Services: they, their node ports and load balancers.
    Services,
    /// Claims: they and the storage that they ask for, also by storage class.
    Claims,
    /// Everything else: how many there are.
    Objects {
        /// The API group, empty for core.
        group: &'a str,
        /// The plural name.
        resource: &'a str,
    },
}

impl<'a> Counting<'a> {
    /// How the objects of a resource are counted.
    pub fn of(group: &'a str, resource: &'a str) -> Self {
        match (group, resource) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            _ => Self::Objects { group, resource },
        }
    }

    /// Whether an amount called `name` is one of these objects.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::Pods => pod::has(name),
            Self::Services => service::NAMES.contains(&name),
            Self::Claims => claim::has(name),
            Self::Objects { group, resource } => names::of_objects(group, resource).any(|known| known == name),
        }
    }

    /// What `object` uses at `now`.
    pub fn usage(self, object: &Value, now: Timestamp) -> Amounts {
        match self {
            Self::Pods => pod::usage(object, now),
            Self::Services => service::usage(object),
            Self::Claims => claim::usage(object),
            Self::Objects { group, resource } => {
                names::of_objects(group, resource).map(|name| (name, Quantity::units(1))).collect()
            }
        }
    }

    /// Whether `object` is of the sort that `scope` is about.
    pub fn is_in(self, scope: &Scope, object: &Value) -> bool {
        match self {
            Self::Pods => scope.has_pod(object),
            Self::Claims => scope.has_claim(object),
            Self::Services | Self::Objects { .. } => false,
        }
    }

    /// Refuses an object that does not say how much it needs of what `limited` names.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn check_complete<'n>(self, limited: impl Iterator<Item = &'n str>, object: &Value) -> Result<(), String> {
        if self == Self::Pods { pod::check_complete(limited, object) } else { Ok(()) }
    }
}

/// A ResourceQuota, as far as counting goes.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    /// What its author wants.
    pub spec_hard: Amounts,
    /// What is in force.
    pub hard: Amounts,
    /// What is used of it.
    pub used: Amounts,
    /// What objects must be like to count; all of them.
    pub scopes: Vec<Scope>,
}

impl Quota {
    /// Reads the object.
    pub fn read(object: &Value) -> Self {
        Self {
            spec_hard: amounts(&object["spec"]["hard"]),
            hard: amounts(&object["status"]["hard"]),
            used: amounts(&object["status"]["used"]),
            scopes: Scope::of_quota(object),
        }
    }

    /// Whether `object` counts for what is in force.
    pub fn counts(&self, counting: Counting<'_>, object: &Value) -> bool {
        self.hard.keys().any(|name| counting.has(name)) && self.has_in_scope(counting, object)
    }

    /// Whether `object` is of the sort that the quota is about.
    pub fn has_in_scope(&self, counting: Counting<'_>, object: &Value) -> bool {
        self.scopes.iter().all(|scope| counting.is_in(scope, object))
    }
}

/// A map of quantities; what is not readable is left out.
pub fn amounts(map: &Value) -> Amounts {
    let members = map.as_object().into_iter().flat_map(Map::iter);
    members.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?))).collect()
}

/// Amounts as objects carry them.
pub fn to_value(amounts: &Amounts) -> Value {
    amounts.iter().map(|(name, amount)| (name.clone(), Value::from(amount.to_string()))).collect()
}

/// `left` and `right` together.
#[must_use]
pub fn sum(mut left: Amounts, right: &Amounts) -> Amounts {
    for (name, amount) in right {
        let own = left.entry(name.clone()).or_default();
        *own = *own + *amount;
    }
    left
}

#[cfg(test)]
mod tests;
