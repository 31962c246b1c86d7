//! The answers to requests that are refused for who sends them.

use http::StatusCode;

use super::{Attributes, Target, User};
use crate::{ApiError, Details};

/// The answer to credentials that are not valid.
pub fn unauthorized() -> ApiError {
    ApiError {
        code: StatusCode::UNAUTHORIZED,
        reason: "Unauthorized",
        message: "Unauthorized".to_owned(),
        details: None,
    }
}

/// The answer to a request that `user` may not make; `why` adds a sentence.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, why: &str) -> ApiError {
    let mut sentence = denied_sentence(user, attributes);
    if !why.is_empty() {
        sentence = format!("{sentence}: {why}");
    }
    match attributes.target {
        Target::Path(_) => refusal(format!("forbidden: {sentence}"), Details::default()),
        Target::Resource { group, resource, name, .. } => forbidden_object(group, resource, name, &sentence),
    }
}

/// The answer to a request that is refused for the object it carries.
pub fn forbidden_object(group: &str, resource: &str, name: &str, why: &str) -> ApiError {
    let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let subject = if name.is_empty() { qualified } else { format!("{qualified} {name:?}") };
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let details = Details { name: filled(name), group: filled(group), kind: filled(resource), ..Details::default() };
    refusal(format!("{subject} is forbidden: {why}"), details)
}

fn refusal(message: String, details: Details) -> ApiError {
    ApiError { code: StatusCode::FORBIDDEN, reason: "Forbidden", message, details: Some(Box::new(details)) }
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
