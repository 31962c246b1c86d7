//! The `token` subresource of service accounts.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::{conform, input, ownership, scope::Scope};
use crate::{
    ApiError,
    admission::Operation,
    codec::{Body, document, read},
    reviews,
};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";
const DEFINITION: &str = "io.k8s.api.authentication.v1.TokenRequest";
/// How long a token lives whose client does not say.
const SECONDS_DEFAULT: i64 = 3600;

/// Answers a request for a token of a service account.
pub(crate) async fn token(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let mut object = token_request(scope, &body)?;
    ownership::update_part(scope, (DEFINITION, API_VERSION), &mut object)?;
    let object = scope.admit(Operation::Create, object).await?;
    let (auth, store) = (scope.api.auth(), scope.api.store());
    let answered = reviews::request_token(auth, store, scope.namespace(), &scope.request.name, object)?;
    scope.answer(StatusCode::CREATED, &answered)
}

/// The wish in the body, complete.
fn token_request(scope: &Scope, body: &Bytes) -> Result<Value, ApiError> {
    let mut document = document(&scope.headers, body)?;
    conform::check_name((API_VERSION, KIND), &mut document.value)?;
    let unreadable =
        |why| ApiError::bad_request(format!("{KIND} in version \"v1\" cannot be handled as a {KIND}: {why}"));
    let conformed = windlass_schema::conform(DEFINITION, document.value).map_err(unreadable)?;
    let unknown = conformed.unknown.iter().map(|path| format!("unknown field {path:?}"));
    input::report(scope, unknown.chain(document.duplicates).collect())?;
    let mut object = conformed.object;
    if object["spec"]["expirationSeconds"].is_null() {
        object["spec"]["expirationSeconds"] = json!(SECONDS_DEFAULT);
    }
    Ok(object)
}
