//! ComponentStatuses, which are asked for and never stored.

use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::{options::ListOptions, render, scope::Scope};
use crate::{
    ApiError, Subject,
    codec::{Body, respond},
};

/// Whether a resource is answered here.
pub(super) fn is_component_status(group: &str, resource: &str) -> bool {
    group.is_empty() && resource == "componentstatuses"
}

/// Answers a GET of one.
pub(super) async fn get(scope: &Scope) -> Result<Response<Body>, ApiError> {
    let name = &scope.request.name;
    let found = statuses(scope).await.into_iter().find(|status| status["metadata"]["name"] == name.as_str());
    // Kubernetes names the kind here in the singular.
    let subject = Subject { group: "", resource: "componentstatus" };
    scope.answer(StatusCode::OK, &found.ok_or_else(|| ApiError::not_found(subject, name))?)
}

/// Answers a GET of all: the list is not of a revision and has no pages.
pub(super) async fn list(scope: &Scope) -> Result<Response<Body>, ApiError> {
    let options = ListOptions::new(&scope.query, false)?;
    options.fields.check(&scope.kind)?;
    let mut found = statuses(scope).await;
    found.retain(|status| options.labels.matches(status) && options.fields.matches(status));
    Ok(respond(StatusCode::OK, &render::list(scope, found, json!({}))?, &scope.accept))
}

async fn statuses(scope: &Scope) -> Vec<Value> {
    scope.api.system().components.statuses(scope.api.store()).await
}
