//! The `token` subresource of a service account: a new token for it.

use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_store::{Snapshot, Store};

use crate::auth::{Auth, Bound, Reference};
use crate::object::{self, Object};
use crate::{ApiError, Cause, Subject};

const KIND: Subject<'_> = Subject { group: "authentication.k8s.io", resource: "TokenRequest" };
const EXPIRATION_SECONDS_DEFAULT: i64 = 3600;
const EXPIRATION_SECONDS_MIN: i64 = 600;
const EXPIRATION_SECONDS_MAX: i64 = 1 << 32;
/// The lifetime that Pods' tokens ask for, by which they are told from others.
const POD_TOKEN_SECONDS: i64 = 3607;
/// The lifetime that those get in fact, for programs that read their token only once.
const POD_TOKEN_SECONDS_EXTENDED: i64 = 365 * 24 * 3600;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TokenRequestSpec {
    audiences: Option<Vec<String>>,
    bound_object_ref: Option<BoundObject>,
    expiration_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundObject {
    kind: String,
    api_version: String,
    name: String,
    uid: String,
}

/// A token for the service account `namespace`/`name`, as `request` (a `TokenRequest`) wants it.
///
/// # Errors
/// 404 if the account or what the token is to be bound to is not there, 409 if it is another one, 422 for bad wishes.
pub(crate) fn request_token(
    auth: &Auth,
    store: &Store,
    namespace: &str,
    name: &str,
    mut request: Value,
) -> Result<Value, ApiError> {
    let issuer = auth.issuer().ok_or_else(|| ApiError::unavailable("this API server issues no tokens"))?;
    let spec: TokenRequestSpec = super::spec(&request)?;
    check_metadata(&request, namespace, name)?;
    let snapshot = store.snapshot();
    let account = find(&snapshot, "serviceaccounts", namespace, name)?;
    check_identity(&request, &account)?;
    let seconds = expiration(&spec)?;
    let audiences = match spec.audiences {
        Some(audiences) if !audiences.is_empty() => audiences,
        _ => issuer.audiences(),
    };
    let mut bound = Bound { namespace: namespace.to_owned(), serviceaccount: reference(&account), ..Bound::default() };
    if let Some(object) = &spec.bound_object_ref {
        bind(&mut bound, object, name, &snapshot)?;
    }
    let now = auth.clock().now();
    let mut lifetime = seconds;
    if bound.pod.is_some() && seconds == POD_TOKEN_SECONDS && audiences == issuer.audiences() {
        bound.warnafter = Some(now.as_second() + seconds);
        lifetime = POD_TOKEN_SECONDS_EXTENDED;
    }
    let token = issuer.issue(bound, audiences.clone(), now, lifetime).map_err(ApiError::internal)?;
    request.set_meta("name", name);
    request.set_meta("namespace", namespace);
    request.set_meta("uid", account.uid());
    request.set_meta("creationTimestamp", object::timestamp(now));
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = json!(seconds);
    let end = object::timestamp(now + SignedDuration::from_secs(seconds));
    request["status"] = json!({"token": token, "expirationTimestamp": end});
    Ok(request)
}

fn check_metadata(request: &Value, namespace: &str, name: &str) -> Result<(), ApiError> {
    for (field, own, wanted) in [("name", request.name(), name), ("namespace", request.namespace(), namespace)] {
        if !own.is_empty() && own != wanted {
            let message = format!("Invalid value: {own:?}: must match the service account {field} if specified");
            return Err(invalid(name, &format!("metadata.{field}"), message));
        }
    }
    Ok(())
}

/// Whoever names an identity means one account, and not another of the same name.
fn check_identity(request: &Value, account: &Value) -> Result<(), ApiError> {
    let (wanted, found) = (request.uid(), account.uid());
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let why =
        format!("the UID in the token request ({wanted}) does not match the UID of the service account ({found})");
    Err(ApiError::conflict(KIND, account.name(), why))
}

fn expiration(spec: &TokenRequestSpec) -> Result<i64, ApiError> {
    let seconds = spec.expiration_seconds.unwrap_or(EXPIRATION_SECONDS_DEFAULT);
    let message = match seconds {
        ..EXPIRATION_SECONDS_MIN => "may not specify a duration less than 10 minutes",
        EXPIRATION_SECONDS_MIN..=EXPIRATION_SECONDS_MAX => return Ok(seconds),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(invalid("", "spec.expirationSeconds", format!("Invalid value: {seconds}: {message}")))
}

fn bind(bound: &mut Bound, object: &BoundObject, account: &str, snapshot: &Snapshot) -> Result<(), ApiError> {
    let namespace = bound.namespace.clone();
    let (resource, place) = match (object.api_version.as_str(), object.kind.as_str()) {
        ("v1", "Pod") => ("pods", namespace.as_str()),
        ("v1", "Secret") => ("secrets", namespace.as_str()),
        ("v1", "Node") => ("nodes", ""),
        (version, kind) => {
            return Err(ApiError::bad_request(format!("cannot bind token to object of type {version}, Kind={kind}")));
        }
    };
    let found = find(snapshot, resource, place, &object.name)?;
    if !object.uid.is_empty() && object.uid != found.uid() {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. \
             The object might have been deleted and then recreated",
            object.uid
        );
        return Err(ApiError::conflict(Subject { group: "", resource: &object.kind }, &object.name, why));
    }
    match resource {
        "secrets" => bound.secret = Some(reference(&found)),
        "nodes" => bound.node = Some(reference(&found)),
        _ => {
            let spec = &found["spec"];
            if spec["serviceAccountName"] != account {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            bound.pod = Some(reference(&found));
            bound.node = spec["nodeName"].as_str().map(|node| match find(snapshot, "nodes", "", node) {
                Ok(node) => reference(&node),
                Err(_) => Reference { name: node.to_owned(), uid: String::new() },
            });
        }
    }
    Ok(())
}

fn find(snapshot: &Snapshot, resource: &str, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let entry = snapshot.get(&format!("/core/{resource}/{place}{name}"));
    let entry = entry.ok_or_else(|| ApiError::not_found(Subject { group: "", resource }, name))?;
    serde_json::from_slice(&entry.value).map_err(ApiError::internal)
}

fn reference(object: &Value) -> Reference {
    Reference { name: object.name().to_owned(), uid: object.uid().to_owned() }
}

fn invalid(name: &str, field: &str, message: String) -> ApiError {
    let cause = Cause { reason: "FieldValueInvalid".to_owned(), message, field: Some(field.to_owned()) };
    ApiError::invalid(KIND, name, vec![cause])
}
