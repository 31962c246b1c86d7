//! What is said between the server and a webhook: `AdmissionReview`, in its two versions.

use std::collections::BTreeMap;

use base64::Engine as _;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Review, form::Form};
use crate::{ApiError, Details};

/// The versions of reviews that the server speaks.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The `request` of a review: what the webhook is told.
pub(super) fn request(review: &Review<'_>, form: &Form, object: &Value, old: &Value) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let resource = |group: &str, version: &str, resource: &str| json!({ "group": group, "version": version, "resource": resource });
    let user = review.user;
    let mut request = json!({
        "uid": uuid::Uuid::new_v4().to_string(),
        "kind": kind(&form.kind.group, &form.kind.version, &form.kind.kind),
        "resource": resource(&form.group, &form.version, &form.resource),
        "requestKind": kind(&review.kind.group, &review.kind.version, &review.kind.kind),
        "requestResource": resource(review.group, review.version, review.resource),
        "operation": review.operation.as_str(),
        "userInfo": { "username": user.name, "groups": user.groups },
        "object": object,
        "oldObject": old,
        "dryRun": review.dry_run,
        "options": review.options,
    });
    for (field, value) in [
        ("subResource", review.subresource),
        ("requestSubResource", review.subresource),
        ("name", review.given_name),
        ("namespace", review.namespace),
    ] {
        if !value.is_empty() {
            request[field] = value.into();
        }
    }
    if !user.uid.is_empty() {
        request["userInfo"]["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        request["userInfo"]["extra"] = json!(user.extra);
    }
    request
}

/// The review that carries `request`, in the first version that the webhook and the server both know.
pub(super) fn review(request: Value, accepted: &[String]) -> Option<Value> {
    let version = accepted.iter().find(|version| VERSIONS.contains(&version.as_str()))?;
    Some(json!({ "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request }))
}

/// What a webhook decides.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// The operations of a JSON patch; none if there is nothing to change.
    pub(super) patch: Option<Value>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: BTreeMap<String, String>,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response {
    uid: String,
    allowed: bool,
    status: Option<Status>,
    patch: Option<String>,
    patch_type: Option<String>,
    warnings: Option<Vec<String>>,
    audit_annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

/// Which side of admission a webhook is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// Reads the answer to `sent`.
///
/// # Errors
/// What is wrong with the answer.
pub(super) fn verdict(sent: &Value, mut answer: Value, phase: Phase) -> Result<Verdict, String> {
    let response = answer["response"].take();
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    let mut response = Response::deserialize(response).map_err(|error| error.to_string())?;
    if sent["apiVersion"] == "admission.k8s.io/v1" {
        check(sent, &answer, &response, phase)?;
    } else if phase == Phase::Validating {
        response.patch = None;
    }
    let patch = response.patch.filter(|patch| !patch.is_empty()).map(|patch| operations(&patch)).transpose()?;
    Ok(Verdict {
        allowed: response.allowed,
        patch: patch.filter(|operations| operations.as_array().is_none_or(|operations| !operations.is_empty())),
        warnings: response.warnings.unwrap_or_default(),
        annotations: response.audit_annotations.unwrap_or_default(),
        status: response.status,
    })
}

/// What only the newer version insists on.
fn check(sent: &Value, answer: &Value, response: &Response, phase: Phase) -> Result<(), String> {
    let wanted = sent["request"]["uid"].as_str().unwrap_or_default();
    if response.uid != wanted {
        return Err(format!("expected response.uid={wanted:?}, got {:?}", response.uid));
    }
    let text = |field: &str| answer[field].as_str().unwrap_or_default();
    if (text("apiVersion"), text("kind")) != ("admission.k8s.io/v1", "AdmissionReview") {
        let found = format!("{}, Kind={}", text("apiVersion"), text("kind"));
        return Err(format!("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {found}"));
    }
    let has_patch = response.patch.as_ref().is_some_and(|patch| !patch.is_empty());
    let why = match (phase, has_patch, response.patch_type.as_deref()) {
        (Phase::Validating, true, _) => "validating webhook may not return response.patch",
        (Phase::Validating, false, Some(_)) => "validating webhook may not return response.patchType",
        (Phase::Mutating, true, None) => "webhook returned response.patch but not response.patchType",
        (Phase::Mutating, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (Phase::Mutating, true, Some(kind)) if kind != "JSONPatch" => {
            return Err(format!("unsupported patch type {kind:?}"));
        }
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

fn operations(patch: &str) -> Result<Value, String> {
    let undecodable = |why: String| format!("received undecodable patch in webhook response: {why}");
    let bytes = base64::engine::general_purpose::STANDARD.decode(patch);
    let bytes = bytes.map_err(|error| undecodable(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| undecodable(error.to_string()))
}

impl Verdict {
    /// The answer to the client whose request the webhook `name` denies.
    pub(super) fn denial(self, name: &str) -> ApiError {
        let Status { code, reason, message, details } = self.status.unwrap_or_default();
        let denied = format!("admission webhook {name:?} denied the request");
        let reason = reason.unwrap_or_default();
        let message = match message.filter(|message| !message.is_empty()) {
            Some(message) => format!("{denied}: {message}"),
            None if !reason.is_empty() => format!("{denied}: {reason}"),
            None => format!("{denied} without explanation"),
        };
        // A denial is never a success.
        let code = code.filter(|code| *code >= 400).and_then(|code| StatusCode::from_u16(code).ok());
        ApiError::foreign(code.unwrap_or(StatusCode::BAD_REQUEST), reason, message, details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_answer(response: Value, phase: Phase, expected: &str) {
        let sent = json!({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}});
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        let found = match verdict(&sent, answer, phase) {
            Err(why) => why,
            Ok(verdict) if verdict.allowed => "allowed".to_owned(),
            Ok(verdict) => {
                let denial = verdict.denial("x.y.z");
                format!("{} {}: {}", denial.code.as_u16(), denial.reason, denial.message)
            }
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn denials_read_as_upstream_writes_them() {
        let denied = "admission webhook \"x.y.z\" denied the request";
        let rows = [
            (json!({"uid": "u"}), format!("400 : {denied} without explanation")),
            (json!({"uid": "u", "status": {"reason": "no"}}), format!("400 no: {denied}: no")),
            (
                json!({"uid": "u", "status": {"code": 403, "message": "never", "reason": "Forbidden"}}),
                format!("403 Forbidden: {denied}: never"),
            ),
            (json!({"uid": "u", "status": {"code": 200, "message": "m"}}), format!("400 : {denied}: m")),
        ];
        for (response, expected) in rows {
            check_answer(response, Phase::Validating, &expected);
        }
    }

    #[test]
    fn answers_that_are_not_to_the_point_are_errors() {
        use Phase::{Mutating, Validating};
        check_answer(json!({"uid": "u", "allowed": true}), Validating, "allowed");
        check_answer(Value::Null, Validating, "webhook response was absent");
        check_answer(json!({"uid": "v", "allowed": true}), Validating, "expected response.uid=\"u\", got \"v\"");
        let patch = json!({"uid": "u", "allowed": true, "patch": "W10="});
        check_answer(patch.clone(), Validating, "validating webhook may not return response.patch");
        check_answer(patch, Mutating, "webhook returned response.patch but not response.patchType");
        let typed = json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"});
        check_answer(typed, Mutating, "webhook returned response.patchType but not response.patch");
    }
}
