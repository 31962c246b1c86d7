//! Answers in the name of the API.

use std::fmt::Display;

use http::{Response, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;
use windlass_runtime::tap::Call;

/// A success with an object.
pub(super) fn object(code: StatusCode, object: &Value) -> Response<Body> {
    respond(code, object)
}

/// Why something is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
}

impl Refusal {
    /// The plan cannot say what would come of it.
    pub(super) fn beyond(message: String) -> Self {
        Self { code: StatusCode::NOT_IMPLEMENTED, reason: "NotImplemented", message }
    }

    /// The object of a call is not there.
    pub(super) fn missing(call: &Call) -> Self {
        let message = format!("{} \"{}\" not found", call.resource, call.name.as_deref().unwrap_or_default());
        Self { code: StatusCode::NOT_FOUND, reason: "NotFound", message }
    }

    /// There is an object of that name.
    pub(super) fn exists(call: &Call, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", call.resource);
        Self { code: StatusCode::CONFLICT, reason: "AlreadyExists", message }
    }

    /// The object of a call is not as the caller takes it to be.
    pub(super) fn conflict(call: &Call, why: &str) -> Self {
        let name = call.name.as_deref().unwrap_or_default();
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", call.resource);
        Self { code: StatusCode::CONFLICT, reason: "Conflict", message }
    }

    /// The patch does not fit.
    pub(super) fn invalid(error: &dyn Display) -> Self {
        Self { code: StatusCode::UNPROCESSABLE_ENTITY, reason: "Invalid", message: error.to_string() }
    }

    /// The API's words for it.
    pub(super) fn response(&self) -> Response<Body> {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        respond(self.code, &status)
    }
}

/// What the API says when an object is gone at once.
pub(super) fn deleted(name: &str, uid: Option<&str>) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {"name": name, "uid": uid},
    });
    respond(StatusCode::OK, &status)
}

/// Reads an answer: its code and its JSON.
pub(super) async fn read(response: Response<Body>) -> Result<(StatusCode, Value), BoxError> {
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes)?))
}

fn respond(code: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
