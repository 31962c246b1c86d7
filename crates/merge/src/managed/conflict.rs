//! Fields that an applied configuration would take from others.

use std::collections::BTreeMap;
use std::fmt;

use super::entry::{ManagerId, Operation};
use crate::path::{PathElement, path_text};

/// A field that another manager owns and that a configuration would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The name of the manager that owns the field.
    pub manager: String,
    /// How it came to own it.
    pub operation: Operation,
    /// The version in which it updates; `None` for an applier, which is the same in all.
    pub api_version: Option<String>,
    /// The subresource through which it writes; empty for the object itself.
    pub subresource: String,
    /// The field.
    pub path: Vec<PathElement>,
}

/// All conflicts of one configuration, ordered by manager; shown as the message of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl Conflict {
    pub(super) fn new(id: &ManagerId, path: Vec<PathElement>) -> Self {
        let ManagerId { name, operation, api_version, subresource } = id.clone();
        Self { manager: name, operation, api_version, subresource, path }
    }

    /// The field as it is shown: `.spec.replicas`.
    pub fn field(&self) -> String {
        path_text(&self.path)
    }

    /// The owner as it is shown: `"kube-controller" with subresource "status" using apps/v1`.
    pub fn owner(&self) -> String {
        let mut owner = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            owner += &format!(" with subresource {:?}", self.subresource);
        }
        if let Some(api_version) = &self.api_version {
            owner += &format!(" using {api_version}");
        }
        owner
    }
}

impl fmt::Display for Conflict {
    /// The message of the cause: `conflict with "kubectl"`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "conflict with {}", self.owner())
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(formatter, "Apply failed with 1 conflict: {conflict}: {}", conflict.field());
        }
        let mut by_owner: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for conflict in &self.0 {
            by_owner.entry(conflict.owner()).or_default().push(format!("- {}", conflict.field()));
        }
        let lines = by_owner
            .into_iter()
            .flat_map(|(owner, fields)| std::iter::once(format!("conflicts with {owner}:")).chain(fields));
        let lines: Vec<_> = lines.collect();
        write!(formatter, "Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }
}

impl std::error::Error for Conflicts {}
