//! Errors as clients see them: a `Status` with code, reason, details.

use std::{borrow::Cow, fmt};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_schema::FieldError;

/// A refused or failed request; it becomes a `metav1.Status` at the edge.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub code: StatusCode,
    /// The machine-readable reason that clients branch on.
    pub reason: Cow<'static, str>,
    /// The sentence for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// Sentences for the `Warning` headers of the answer.
    pub warnings: Vec<String>,
}

/// What a [`ApiError`] is about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The object's API group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The resource (or, for invalid objects, the kind).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The object's uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The single reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// The token that goes on with an expired list; it is shown in the metadata of the `Status`.
    #[serde(skip)]
    pub continue_token: Option<String>,
}

/// One reason of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// The path of the field, such as `spec.size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// A resource (or, where an object is invalid, a kind) as errors name it: `deployments.apps`, `pods`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The API group, empty for core.
    pub group: &'a str,
    /// The plural name of the resource, or the kind.
    pub resource: &'a str,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => formatter.write_str(self.resource),
            group => write!(formatter, "{}.{group}", self.resource),
        }
    }
}

impl Subject<'_> {
    fn details(&self, name: &str) -> Details {
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Details { name: filled(name), group: filled(self.group), kind: filled(self.resource), ..Details::default() }
    }
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None, warnings: Vec::new() }
    }

    fn about(self, details: Details) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// 404: there is no such object.
    pub fn not_found(subject: Subject<'_>, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{subject} {name:?} not found"))
            .about(subject.details(name))
    }

    /// 404: there is no such path or resource.
    pub fn no_such_path() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
            .about(Details::default())
    }

    /// 409: the name is taken.
    pub fn already_exists(subject: Subject<'_>, name: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", format!("{subject} {name:?} already exists"))
            .about(subject.details(name))
    }

    /// 409: the object is not as the request supposes.
    pub fn conflict(subject: Subject<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {subject} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(subject.details(name))
    }

    /// 409: the object changed since the client read it.
    pub fn modified(subject: Subject<'_>, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, name, why)
    }

    /// 409: others own fields that an apply wants to change.
    pub fn apply_conflict(causes: Vec<Cause>, message: String) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(Details { causes, ..Details::default() })
    }

    /// 403: the request is refused for the object it carries.
    pub fn forbidden(subject: Subject<'_>, name: &str, why: impl fmt::Display) -> Self {
        let object = if name.is_empty() { subject.to_string() } else { format!("{subject} {name:?}") };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("{object} is forbidden: {why}"))
            .about(subject.details(name))
    }

    /// 410: the past that the request starts from is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 422: the object breaks rules; `kind` names its kind.
    pub fn invalid(kind: Subject<'_>, name: &str, causes: Vec<Cause>) -> Self {
        let mut sentences: Vec<String> = Vec::new();
        for cause in &causes {
            let sentence = match &cause.field {
                Some(field) => format!("{field}: {}", cause.message),
                None => cause.message.clone(),
            };
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        let why = match &sentences[..] {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", format!("{kind} {name:?} is invalid{why}"))
            .about(Details { causes, ..kind.details(name) })
    }

    /// 422: fields of the object break rules; `kind` names its kind.
    pub fn invalid_fields(kind: Subject<'_>, name: &str, errors: Vec<FieldError>) -> Self {
        let causes = errors.into_iter().map(|error| Cause {
            reason: error.kind.reason().to_owned(),
            message: error.body(),
            field: Some(if error.path.is_empty() { "<nil>".to_owned() } else { error.path }),
        });
        Self::invalid(kind, name, causes.collect())
    }

    /// 400: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 405: the verb is not offered.
    pub fn method_not_allowed(subject: Subject<'_>, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind \"{subject}\"");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(subject.details(""))
    }

    /// 406: no answer in a form that the client accepts; `accepted` lists those there are.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 406: the answer has no such form, for the reason `message`.
    pub fn not_acceptable_form(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 415: the body has a form that is not understood; `accepted` lists those that are.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 413: the body is too long.
    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 429: not now.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message)
            .about(Details { retry_after_seconds: Some(retry_after_seconds), ..Details::default() })
    }

    /// 500: a failure of the server itself.
    pub fn internal(why: impl fmt::Display) -> Self {
        let causes = vec![Cause { reason: String::new(), message: why.to_string(), field: None }];
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("Internal error occurred: {why}"))
            .about(Details { causes, ..Details::default() })
    }

    /// 500 without a reason: what Kubernetes answers where it does not sort the failure.
    pub fn unsorted(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// 503: a part that is needed is not there now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 504: a wait ended without a result.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: u32) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", format!("Timeout: {message}"))
            .about(Details { retry_after_seconds: Some(retry_after_seconds), ..Details::default() })
    }

    /// 504: the client names a revision that is still to come.
    pub fn revision_too_large(wanted: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let mut error = Self::timeout(&message, 1);
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: None,
        };
        if let Some(details) = &mut error.details {
            details.causes.push(cause);
        }
        error
    }

    /// 401: nobody knows who this is.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    /// An error in the words of somebody else.
    pub(crate) fn foreign(code: StatusCode, reason: String, message: String, details: Option<Details>) -> Self {
        let details = details.map(Box::new);
        Self { code, reason: reason.into(), message, details, warnings: Vec::new() }
    }

    /// Adds one more reason.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Whether the object or path is not there.
    pub fn is_not_found(&self) -> bool {
        self.reason == "NotFound"
    }

    /// Whether the name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The `metav1.Status` that clients get.
    pub fn status(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = self.details.as_ref().and_then(|details| details.continue_token.as_ref()) {
            metadata["continue"] = Value::from(token.as_str());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_ref().into();
        }
        if let Some(details) = &self.details {
            status["details"] = serde_json::to_value(details).expect("details are strings and numbers");
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENTS: Subject<'_> = Subject { group: "apps", resource: "deployments" };

    fn cause(field: &str, message: &str) -> Cause {
        Cause { reason: "FieldValueInvalid".into(), message: message.into(), field: Some(field.into()) }
    }

    #[test]
    fn a_missing_object_is_named_with_its_group() {
        let status = ApiError::not_found(DEPLOYMENTS, "web").status();
        assert_eq!(status["message"], "deployments.apps \"web\" not found");
        assert_eq!(status["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
        assert_eq!(status["code"], 404);
    }

    #[test]
    fn several_causes_are_listed_once_each() {
        let kind = Subject { group: "", resource: "Pod" };
        let one = ApiError::invalid(kind, "p", vec![cause("spec", "bad"), cause("spec", "bad")]);
        assert_eq!(one.message, "Pod \"p\" is invalid: spec: bad");
        let two = ApiError::invalid(kind, "p", vec![cause("spec", "bad"), cause("status", "worse")]);
        assert_eq!(two.message, "Pod \"p\" is invalid: [spec: bad, status: worse]");
    }

    #[test]
    fn the_token_of_an_expired_list_is_metadata() {
        let mut error = ApiError::expired("gone");
        error.details = Some(Box::new(Details { continue_token: Some("t".into()), ..Details::default() }));
        assert_eq!(error.status()["metadata"], json!({"continue": "t"}));
    }
}
