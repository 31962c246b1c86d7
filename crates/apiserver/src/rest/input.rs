//! The object in the body of a request: its kind, and the fields that the kind does not have.

use bytes::Bytes;
use serde_json::Value;

use super::{conform, options::FieldValidation, scope::Scope};
use crate::{
    ApiError,
    codec::{Document, document},
};

/// The object in the body, of the kind that the path names.
pub(crate) fn object(scope: &Scope, body: &Bytes) -> Result<Value, ApiError> {
    let document = document(&scope.headers, body)?;
    checked(scope, document)
}

/// The object of a document, after the checks of its kind and fields.
pub(crate) fn checked(scope: &Scope, document: Document) -> Result<Value, ApiError> {
    let mut object = document.value;
    conform::check_kind(&scope.kind, &mut object)?;
    let (object, unknown) = conform::read(&scope.kind, object)?;
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    report(scope, unknown.chain(document.duplicates).collect())?;
    Ok(object)
}

/// Refuses, tells or ignores odd fields, as the client asks.
pub(crate) fn report(scope: &Scope, odd: Vec<String>) -> Result<(), ApiError> {
    match scope.options.field_validation {
        _ if odd.is_empty() => Ok(()),
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            odd.into_iter().for_each(|sentence| scope.warn(sentence));
            Ok(())
        }
        FieldValidation::Strict => Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            odd.join(", "),
            kind = scope.kind.kind,
            version = scope.kind.version,
        ))),
    }
}
