//! The answers to requests that are refused for who sends them.

use http::StatusCode;

use super::{Attributes, Target, User};
use crate::{ApiError, Details, Subject};

/// The answer to credentials that are not valid.
pub fn unauthorized() -> ApiError {
    ApiError::unauthorized("Unauthorized")
}

/// The answer to a request that `user` may not make; `why` adds a sentence.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, why: &str) -> ApiError {
    let mut sentence = denied_sentence(user, attributes);
    if !why.is_empty() {
        sentence = format!("{sentence}: {why}");
    }
    match attributes.target {
        Target::Path(_) => {
            let details = Some(Details::default());
            ApiError::foreign(StatusCode::FORBIDDEN, "Forbidden".to_owned(), format!("forbidden: {sentence}"), details)
        }
        Target::Resource { group, resource, name, .. } => {
            ApiError::forbidden(Subject { group, resource }, name, sentence)
        }
    }
}

fn denied_sentence(user: &User, attributes: &Attributes<'_>) -> String {
    let (name, verb) = (&user.name, attributes.verb);
    match attributes.target {
        Target::Path(path) => format!("User {name:?} cannot {verb} path {path:?}"),
        Target::Resource { group, resource, subresource, namespace, .. } => {
            let resource =
                if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
            let place = if namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {namespace:?}")
            };
            format!("User {name:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
        }
    }
}
