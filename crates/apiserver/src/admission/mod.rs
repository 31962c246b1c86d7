//! What happens to an object between its author and the store: plugins that change it, then plugins that refuse it.

use serde_json::Value;

use crate::ApiError;
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
    /// The kind of the object.
    pub kind: &'a str,
    /// The namespace, or empty.
    pub namespace: &'a str,
    /// The name, or empty while `generateName` has not been used.
    pub name: &'a str,
    /// The object as it is to be stored; `Null` for deletes.
    pub object: Value,
    /// The object as it is stored now; `Null` for creates.
    pub old: Value,
    /// Whether nothing is stored in the end.
    pub dry_run: bool,
    /// Sentences for the `Warning` headers of the answer.
    pub warnings: Vec<String>,
}

/// The chain of plugins.
#[derive(Clone, Debug, Default)]
pub struct Admission {}

impl Admission {
    /// Lets the plugins complete or change the object.
    ///
    /// Call it after decoding and defaulting, before validation.
    pub async fn mutate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        let _ = review;
        Ok(())
    }

    /// Lets the plugins refuse the object in its final form.
    ///
    /// Call it after validation, right before the commit.
    pub async fn validate(&self, review: &mut Review<'_>) -> Result<(), ApiError> {
        let _ = review;
        Ok(())
    }
}
