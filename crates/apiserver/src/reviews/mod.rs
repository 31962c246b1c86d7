//! Questions about identities and rights, asked by creating objects that are answered and never stored.

mod access;
mod identity;
mod token_request;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ApiError;
use crate::auth::{Auth, User};

pub use token_request::request_token;

/// Whether a resource is a question instead of something stored.
pub fn is_review(group: &str, resource: &str) -> bool {
    match group {
        "authorization.k8s.io" => matches!(
            resource,
            "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
                | "localsubjectaccessreviews"
        ),
        "authentication.k8s.io" => matches!(resource, "selfsubjectreviews" | "tokenreviews"),
        _ => false,
    }
}

/// Answers the question that `user` asks with `object`: the object again, with its status.
///
/// # Errors
/// 400 or 422 for a question that cannot be answered, 404 for a resource that is none.
pub fn answer(auth: &Auth, user: &User, resource: &str, namespace: &str, mut object: Value) -> Result<Value, ApiError> {
    let status = match resource {
        "selfsubjectaccessreviews" => access::own(auth, user, &spec(&object)?),
        "subjectaccessreviews" => access::of_subject(auth, &spec(&object)?, "SubjectAccessReview"),
        "localsubjectaccessreviews" => access::in_namespace(auth, &spec(&object)?, namespace),
        "selfsubjectrulesreviews" => access::rules(auth, user, &spec(&object)?),
        "selfsubjectreviews" => Ok(identity::own(user)),
        "tokenreviews" => identity::of_token(auth, &spec(&object)?),
        _ => Err(ApiError::no_such_path()),
    }?;
    if let Some(members) = object.as_object_mut() {
        members.insert("status".to_owned(), status);
    }
    Ok(object)
}

fn spec<T: DeserializeOwned + Default>(object: &Value) -> Result<T, ApiError> {
    match object.get("spec") {
        None | Some(Value::Null) => Ok(T::default()),
        Some(spec) => T::deserialize(spec).map_err(|error| ApiError::bad_request(format!("spec: {error}"))),
    }
}
