//! What a write made, and the answer that carries it.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;
use windlass_store::Revision;

use super::{scope::Scope, stored};
use crate::{ApiError, codec::Body, object::Object};

/// An object after a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Value,
    /// Its text and its version in the store, where the write stored it.
    stored: Option<(Bytes, Revision)>,
}

impl Written {
    /// An object that was stored as `text`.
    pub(super) fn stored(mut object: Value, text: Bytes, revision: Revision) -> Self {
        object.set_meta("resourceVersion", revision.to_string());
        Self { object, stored: Some((text, revision)) }
    }

    /// An object that was not stored: it would be, or it was so already, or it is gone.
    pub(super) fn unstored(object: Value) -> Self {
        Self { object, stored: None }
    }

    /// The answer that carries the object. What the store has as text need not be written a second time.
    pub(super) fn answer(&self, scope: &Scope, status: StatusCode) -> Result<Response<Body>, ApiError> {
        let stored = self.stored.as_ref();
        match stored.and_then(|(text, revision)| stored::object(scope, status, text, *revision)) {
            Some(response) => Ok(response),
            None => scope.answer(status, &self.object),
        }
    }
}
