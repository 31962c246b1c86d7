//! One write on its way through admission.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ApiError;
use crate::Subject;
use crate::auth::User;

/// What the request does with the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object or a subresource of it changes.
    Update,
    /// The object goes.
    Delete,
    /// A stream to the object is opened.
    Connect,
}

impl Operation {
    /// The operation as rules spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// The kind of an object, in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectKind {
    /// The API group, empty for core.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// The name of the kind.
    pub kind: String,
}

/// One write on its way through admission.
#[derive(Debug)]
pub struct Review<'a> {
    /// What the request does.
    pub operation: Operation,
    /// Who sent it.
    pub user: &'a User,
    /// The API group of the resource, empty for core.
    pub group: &'a str,
    /// The version of the request.
    pub version: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The kind of the object; that of a subresource may be another than that of the resource.
    pub kind: ObjectKind,
    /// The namespace, or empty.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The name as the request has it: empty if the server made it up.
    pub given_name: &'a str,
    /// The object as it is to be stored; `Null` for deletes.
    pub object: Value,
    /// The object as it is stored now; `Null` for creates.
    pub old: Value,
    /// The options of the request, as an object.
    pub options: Value,
    /// Whether nothing is stored in the end.
    pub dry_run: bool,
    /// Sentences for the `Warning` headers of the answer.
    pub warnings: Vec<String>,
    /// What admission has to say to those who keep the audit log.
    pub annotations: BTreeMap<String, String>,
}

impl Review<'_> {
    /// Whether this is about objects of a resource themselves, not about a subresource.
    pub(super) fn is(&self, operation: Operation, group: &str, resource: &str) -> bool {
        self.operation == operation && self.group == group && self.resource == resource && self.subresource.is_empty()
    }

    /// Whether this changes what a running Pod may use.
    pub(super) fn is_resize(&self) -> bool {
        let path = (self.operation, self.group, self.resource, self.subresource);
        path == (Operation::Update, "", "pods", "resize")
    }

    /// The answer that refuses the write.
    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> ApiError {
        ApiError::forbidden(Subject { group: self.group, resource: self.resource }, self.name, why)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A review of an object that somebody creates.
    pub(in crate::admission) fn creation<'a>(
        user: &'a User,
        group: &'a str,
        resource: &'a str,
        namespace: &'a str,
        object: Value,
    ) -> Review<'a> {
        Review {
            operation: Operation::Create,
            user,
            group,
            version: "v1",
            resource,
            subresource: "",
            kind: ObjectKind::default(),
            namespace,
            name: "it",
            given_name: "it",
            object,
            old: Value::Null,
            options: Value::Null,
            dry_run: false,
            warnings: Vec::new(),
            annotations: BTreeMap::new(),
        }
    }
}
