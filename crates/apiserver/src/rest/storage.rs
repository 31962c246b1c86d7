//! Objects as the store keeps them: their keys, and their bytes without the version that the store itself knows.

use bytes::Bytes;
use serde_json::Value;
use windlass_schema::Kind;
use windlass_store::{CommitError, Entry, Revision};

use super::versions;
use crate::{ApiError, codec::json_bytes, object::Object, registry::Served};

/// The key under which an object is stored.
pub(crate) fn key(kind: &Kind, namespace: &str, name: &str) -> String {
    format!("{}{name}", prefix(kind, namespace))
}

/// The prefix of the keys of a kind; without a namespace, of all namespaces.
pub(crate) fn prefix(kind: &Kind, namespace: &str) -> String {
    let group = match versions::storage_group(kind) {
        "" => "core",
        group => group,
    };
    match (kind.namespaced, namespace) {
        (true, "") | (false, _) => format!("/{group}/{}/", kind.plural),
        (true, namespace) => format!("/{group}/{}/{namespace}/", kind.plural),
    }
}

/// A stored object as clients of `kind` see it.
pub(crate) fn decode(kind: &Served, entry: &Entry) -> Result<Value, ApiError> {
    decode_at(kind, &entry.value, entry.modified)
}

/// As [`decode`], but with the revision of a later event: that of a deletion.
pub(crate) fn decode_at(kind: &Served, bytes: &Bytes, revision: Revision) -> Result<Value, ApiError> {
    let stored: Value = serde_json::from_slice(bytes).map_err(ApiError::internal)?;
    let mut object = versions::from_storage(kind, stored)?;
    object.set_meta("resourceVersion", revision.to_string());
    Ok(object)
}

/// An object as it is stored.
pub(crate) fn encode(kind: &Served, object: &Value) -> Result<Bytes, ApiError> {
    let mut stored = versions::to_storage(kind, object.clone())?;
    stored.set_meta("resourceVersion", Value::Null);
    Ok(json_bytes(&stored))
}

/// A failure of the store that is not about the object.
pub(crate) fn store_error(error: CommitError) -> ApiError {
    match &error {
        CommitError::Closed => ApiError::unavailable("the server is shutting down"),
        _ if error.is_disk_full() => ApiError::internal("the disk is full: nothing was written; free some space"),
        _ => ApiError::internal(error),
    }
}
