//! What is known of one kind, built-in or custom.

use crate::Schema;

/// One kind in one version, as it is served.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, without the group.
    pub version: String,
    /// The name of the kind: `Deployment`.
    pub kind: String,
    /// The name of the kind of lists: `DeploymentList`.
    pub list_kind: String,
    /// The name in paths: `deployments`.
    pub plural: String,
    /// The name for one object: `deployment`.
    pub singular: String,
    /// Short names for the command line: `deploy`.
    pub short_names: Vec<String>,
    /// Groups of kinds that the kind belongs to: `all`.
    pub categories: Vec<String>,
    /// Whether its objects lie in namespaces.
    pub namespaced: bool,
    /// The verbs that it answers to.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// Whether objects are stored in this version.
    pub storage_version: bool,
    /// The hash that discovery publishes for the storage version.
    pub storage_version_hash: Option<String>,
    /// The name of its OpenAPI definition; empty for custom kinds.
    pub definition: String,
    /// The schema of its objects.
    pub schema: Schema,
    /// Fields, beside the name and the namespace, that field selectors may use: `spec.nodeName`.
    pub selectable_fields: Vec<String>,
    /// Columns of the table output that are given as data: those of custom kinds.
    pub columns: Vec<Column>,
}

impl Kind {
    /// The version as objects carry it: `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The name as `plural.group`, or `plural` in the core group.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The subresource `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether the kind answers to `verb`.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// Whether the kind is one of the pinned Kubernetes release.
    pub fn is_builtin(&self) -> bool {
        !self.definition.is_empty()
    }
}

/// A part of an object, or an action on it, with a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Subresource {
    /// The last segment of its path: `status`.
    pub name: String,
    /// The group of the kind that it takes and answers.
    pub group: String,
    /// The version of that kind.
    pub version: String,
    /// The name of that kind.
    pub kind: String,
    /// The verbs that it answers to.
    pub verbs: Vec<String>,
}

/// A column of the table output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The OpenAPI type of the cells; `date` is shown as an age.
    pub r#type: String,
    /// The OpenAPI format of the cells.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0 is always shown, more only in the wide output.
    pub priority: i64,
    /// Where the value stands in the object.
    pub json_path: String,
}
