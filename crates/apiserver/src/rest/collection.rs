//! Deleting all objects that a selector selects.

use http::{Request, Response, StatusCode};
use serde_json::Value;

use super::{delete, list, options::ListOptions, render, scope::Scope};
use crate::{
    ApiError,
    codec::{Body, read, respond},
    object::Object,
};

/// Answers a DELETE of a collection.
pub(crate) async fn delete(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let list_options = ListOptions::new(&scope.query, false)?;
    list_options.fields.check(&scope.kind)?;
    let delete_options = delete::options(scope, &body)?;
    delete::warn(scope, &delete_options);
    let page = list::page(scope, &list_options).await?;
    let metadata = page.metadata();
    let mut deleted: Vec<Value> = Vec::new();
    for item in page.items {
        match delete::delete_object(scope, item.name(), &delete_options).await {
            // As they were, not as the deletion left them.
            Ok(_) => deleted.push(item),
            // Somebody else was faster; the wish is fulfilled.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let value = render::list(scope, deleted, metadata)?;
    Ok(respond(StatusCode::OK, &value, &scope.accept))
}
