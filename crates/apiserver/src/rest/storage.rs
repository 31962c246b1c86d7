//! Objects as the store keeps them: their keys, and their bytes without the version that the store itself knows.

use bytes::Bytes;
use serde_json::Value;
use windlass_schema::Kind;
use windlass_store::{CommitError, Entry, Revision};

use super::versions;
use crate::{Api, ApiError, codec::json_bytes, object::Object, registry::Served};

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
pub(crate) async fn decode(api: &Api, kind: &Served, entry: &Entry) -> Result<Value, ApiError> {
    decode_at(api, kind, &entry.value, entry.modified).await
}

/// As [`decode`], but with the revision of a later event: that of a deletion.
pub(crate) async fn decode_at(api: &Api, kind: &Served, bytes: &Bytes, revision: Revision) -> Result<Value, ApiError> {
    Ok(decode_all(api, kind, [(bytes, revision)]).await?.remove(0))
}

/// As [`decode`], for several at once, which a webhook may convert together.
pub(crate) async fn decode_all<'a>(
    api: &Api,
    kind: &Served,
    entries: impl IntoIterator<Item = (&'a Bytes, Revision)>,
) -> Result<Vec<Value>, ApiError> {
    let mut stored = Vec::new();
    for (bytes, revision) in entries {
        let mut object: Value = serde_json::from_slice(bytes).map_err(ApiError::internal)?;
        object.set_meta("resourceVersion", revision.to_string());
        stored.push(object);
    }
    versions::from_storage(api.webhooks(), kind, stored).await
}

/// An object as it is stored.
pub(crate) async fn encode(api: &Api, kind: &Served, object: &Value) -> Result<Bytes, ApiError> {
    let mut stored = versions::to_storage(api.webhooks(), kind, object.clone()).await?;
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
