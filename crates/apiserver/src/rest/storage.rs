//! Objects as the store keeps them: their keys, and their bytes without the version that the store itself knows.

use bytes::Bytes;
use serde_json::Value;
use windlass_schema::Kind;
use windlass_store::{CommitError, Entry, Revision};

use super::versions;
use crate::{Api, ApiError, codec::json_bytes, object::Object, registry::Served};

/// What most objects fit in.
const TEXT_BYTES: usize = 4 << 10;

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
    if versions::is_storage_version(kind) {
        return Ok(text(object));
    }
    Ok(text(&versions::to_storage(api.webhooks(), kind, object.clone()).await?))
}

/// The text of an object, without its version. What every answer looks for comes first, so that it is found at once, and
/// no byte is allotted that is not used: the store keeps it.
fn text(object: &Value) -> Bytes {
    const FIRST: [&str; 3] = ["apiVersion", "kind", "metadata"];
    let Some(members) = object.as_object() else { return json_bytes(object) };
    let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
    let others = members.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let mut text = Vec::with_capacity(TEXT_BYTES);
    write_members(&mut text, first.chain(others), |text, name, value| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| *name != "resourceVersion");
            write_members(text, kept, |text, _, value| write_json(text, value));
        }
        _ => write_json(text, value),
    });
    Bytes::from(text.into_boxed_slice())
}

/// Writes a map whose values `write` writes.
fn write_members<'a>(
    text: &mut Vec<u8>,
    members: impl Iterator<Item = (&'a String, &'a Value)>,
    write: impl Fn(&mut Vec<u8>, &str, &Value),
) {
    text.push(b'{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_json(text, name);
        text.push(b':');
        write(text, name, value);
    }
    text.push(b'}');
}

fn write_json(text: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(text, value).expect("a JSON value can be written");
}

/// A failure of the store that is not about the object.
pub(crate) fn store_error(error: CommitError) -> ApiError {
    match &error {
        CommitError::Closed => ApiError::unavailable("the server is shutting down"),
        _ if error.is_disk_full() => ApiError::internal("the disk is full: nothing was written; free some space"),
        _ => ApiError::internal(error),
    }
}
