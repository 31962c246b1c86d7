//! Reading one object.

use http::{Response, StatusCode};
use serde_json::Value;

use super::{options, scope::Scope, storage, stored};
use crate::{ApiError, codec::Body};

/// Answers a GET of one object.
pub(crate) async fn get(scope: &Scope) -> Result<Response<Body>, ApiError> {
    if let Some(wanted) = options::revision(&scope.query)? {
        let current = scope.api.store().revision().0;
        if wanted > current {
            return Err(ApiError::revision_too_large(wanted, current));
        }
    }
    let snapshot = scope.api.store().snapshot();
    let key = storage::key(&scope.kind, scope.namespace(), &scope.request.name);
    let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(scope.subject(), &scope.request.name))?;
    match stored::object(scope, StatusCode::OK, &entry.value, entry.modified) {
        Some(response) => Ok(response),
        None => scope.answer(StatusCode::OK, &storage::decode(&scope.api, &scope.kind, entry).await?),
    }
}

/// The object as it is stored now.
pub(crate) async fn live(scope: &Scope, name: &str) -> Result<Value, ApiError> {
    let snapshot = scope.api.store().snapshot();
    let key = storage::key(&scope.kind, scope.namespace(), name);
    let entry = snapshot.get(&key).ok_or_else(|| ApiError::not_found(scope.subject(), name))?;
    storage::decode(&scope.api, &scope.kind, entry).await
}
