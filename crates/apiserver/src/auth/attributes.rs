//! What a request wants to do, in the terms of authorization.

/// A verb and what it is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or a special verb such as `impersonate`.
    pub verb: &'a str,
    /// What it is applied to.
    pub target: Target<'a>,
}

/// What a verb is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Objects of one resource; parts that do not apply are empty.
    Resource {
        /// The API group, empty for core.
        group: &'a str,
        /// The plural name of the resource.
        resource: &'a str,
        /// The subresource, or empty.
        subresource: &'a str,
        /// The namespace, or empty for cluster-scoped resources and for all namespaces.
        namespace: &'a str,
        /// The name of the object, or empty.
        name: &'a str,
    },
    /// A path outside of the resource tree, such as `/version`.
    Path(&'a str),
}

impl<'a> Attributes<'a> {
    /// A verb on a path outside of the resource tree.
    pub fn path(verb: &'a str, path: &'a str) -> Self {
        Attributes { verb, target: Target::Path(path) }
    }
}
