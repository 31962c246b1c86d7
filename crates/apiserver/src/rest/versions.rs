//! Kinds that are served in several versions or groups but stored in one.

use serde_json::{Map, Value};
use windlass_schema::Kind;
use windlass_store::Revision;

use super::autoscaler;
use crate::{
    ApiError,
    crd::{conversion::Conversion, resource},
    registry::Served,
    webhook::Webhooks,
};

/// The group under which objects of `kind` are stored: both kinds of events share one place.
pub(crate) fn storage_group(kind: &Kind) -> &str {
    if is_new_event(kind) { "" } else { &kind.group }
}

/// Stored objects in the version of `kind`.
///
/// # Errors
/// Those of the conversion of custom kinds.
pub(crate) async fn from_storage(
    webhooks: &Webhooks,
    kind: &Served,
    objects: Vec<Value>,
) -> Result<Vec<Value>, ApiError> {
    if let Some(custom) = kind.custom() {
        return resource::from_storage(webhooks, kind, custom, objects).await;
    }
    Ok(objects.into_iter().map(|object| builtin_from_storage(kind, object)).collect())
}

fn builtin_from_storage(kind: &Served, mut object: Value) -> Value {
    if is_new_event(kind) {
        rename(&mut object, |(_, core)| *core, |(new, _)| *new);
    }
    if is_old_autoscaler(kind) {
        autoscaler::to_old(&mut object);
    }
    stamp(&mut object, kind.api_version(), &kind.kind().kind);
    if is_new_event(kind) || is_old_autoscaler(kind) {
        // What is left out where it is zero differs between the two.
        object = match windlass_schema::conform(&kind.definition, object.clone()) {
            Ok(conformed) => conformed.object,
            Err(_) => object,
        };
    }
    object
}

/// An object of `kind` in the version that is stored.
///
/// # Errors
/// Those of the conversion of custom kinds.
pub(crate) async fn to_storage(webhooks: &Webhooks, kind: &Served, mut object: Value) -> Result<Value, ApiError> {
    if let Some(custom) = kind.custom() {
        return resource::to_storage(webhooks, kind, custom, object).await;
    }
    if is_new_event(kind) {
        rename(&mut object, |(new, _)| *new, |(_, core)| *core);
        stamp(&mut object, "v1".to_owned(), "Event");
    }
    if is_old_autoscaler(kind) {
        autoscaler::to_new(&mut object);
        stamp(&mut object, "autoscaling/v2".to_owned(), "HorizontalPodAutoscaler");
    }
    Ok(object)
}

/// Drops what the version that is stored does not know, where versions differ in name only. A webhook knows better.
pub(crate) fn fit_storage(kind: &Served, object: &mut Value) {
    let Some(custom) = kind.custom() else { return };
    if let (Conversion::None, Some(schema)) = (&custom.conversion, &custom.storage_schema) {
        schema.prune(object);
    }
}

/// An object of the kind `from` as one of the kind `to`, which is stored in the same place.
///
/// # Errors
/// Those of the conversion of custom kinds.
pub(crate) async fn convert(webhooks: &Webhooks, from: &Served, to: &Served, object: Value) -> Result<Value, ApiError> {
    if let Some(custom) = from.custom() {
        // Straight there: a detour by the stored version would be a second call.
        return Ok(resource::from_storage(webhooks, to, custom, vec![object]).await?.remove(0));
    }
    let stored = to_storage(webhooks, from, object).await?;
    Ok(builtin_from_storage(to, stored))
}

/// Whether a stored object is not in the version that is stored now.
pub(crate) fn is_outdated(kind: &Served, stored: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        api_version: String,
    }
    let Some(custom) = kind.custom() else { return false };
    let found = serde_json::from_slice::<Version>(stored);
    found.is_ok_and(|found| found.api_version != resource::storage_version(kind, custom))
}

/// Whether objects of `kind` are stored in its version.
pub(crate) fn is_storage_version(kind: &Served) -> bool {
    match kind.custom() {
        Some(custom) => custom.storage_version == kind.version,
        None => !is_new_event(kind) && !is_old_autoscaler(kind),
    }
}

/// Whether an object of `kind` that was written by the commit `modified` is stored just as it is shown.
pub(crate) fn is_stored_as_shown(kind: &Served, modified: Revision) -> bool {
    // What came in by another version has the defaults of that one, and gets those of this one when it is read.
    let is_whole = kind.custom().is_none_or(|custom| custom.served_versions == 1 && kind.is_settled_at(modified));
    is_storage_version(kind) && is_whole
}

fn is_old_autoscaler(kind: &Kind) -> bool {
    kind.group == "autoscaling" && kind.version == "v1" && kind.plural == "horizontalpodautoscalers"
}

fn is_new_event(kind: &Kind) -> bool {
    kind.group == "events.k8s.io" && kind.plural == "events"
}

fn stamp(object: &mut Value, api_version: String, kind: &str) {
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), api_version.into());
        members.insert("kind".to_owned(), kind.into());
    }
}

/// The fields of events by their names in `events.k8s.io` and in the core group.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

type Side = fn(&(&'static str, &'static str)) -> &'static str;

fn rename(object: &mut Value, from: Side, to: Side) {
    let Some(members) = object.as_object_mut() else { return };
    let renamed: Map<String, Value> = std::mem::take(members)
        .into_iter()
        .map(|(name, value)| match EVENT_FIELDS.iter().find(|pair| from(pair) == name) {
            Some(pair) => (to(pair).to_owned(), value),
            None => (name, value),
        })
        .collect();
    *members = renamed;
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::builtin;

    use super::*;

    #[tokio::test]
    async fn both_kinds_of_events_are_one() {
        let webhooks = Webhooks::new(windlass_store::Store::in_memory());
        let served = |group| Served::builtin(builtin().find(group, "v1", "events").unwrap().clone());
        let (new, core) = (&served("events.k8s.io"), &served(""));
        let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "n", "regarding": {"name": "x"},
            "reportingController": "c", "action": "a"});
        let stored = to_storage(&webhooks, new, event.clone()).await.unwrap();
        assert_eq!(
            stored,
            json!({"apiVersion": "v1", "kind": "Event", "message": "n", "involvedObject": {"name": "x"},
            "reportingComponent": "c", "action": "a"})
        );
        assert_eq!(builtin_from_storage(core, stored.clone()), stored);
        let read = builtin_from_storage(new, stored);
        event.as_object().unwrap().iter().for_each(|(name, value)| assert_eq!(&read[name], value));
        assert_eq!(read["deprecatedSource"], json!({}), "what Go always writes");
        assert_eq!(super::super::prefix(new, "a"), super::super::prefix(core, "a"));
    }
}
