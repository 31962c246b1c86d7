//! Following a create, an update or a patch.

use serde_json::{Map, Value};

use super::entry::{Managers, by_manager, decode, encode};
use super::write::{ConvertError, Write};
use super::{cap, transfer};
use crate::order;
use crate::shape::Shape;
use crate::typed::is_identified;

/// Records in `new` who owns what after it replaced `live` (`None`: after it was created).
///
/// *Guarantees.* The manager gets the fields that changed and keeps what it had; others lose fields that changed or
/// went; entries without fields go; the time of an entry changes only with its content. `managedFields` that the client
/// sends back are honoured, `[]` and `[{}]` discard all, and broken ones count as not sent. An object that exists
/// without entries is not tracked until somebody applies to it, nor is one with an item of a list that its keys do not
/// identify.
///
/// # Errors
/// An entry is of another version and the object cannot be converted to it; `new` is then without `managedFields`.
pub fn update<S: Shape>(write: &Write<'_, S>, live: Option<&Value>, new: &mut Value) -> Result<(), ConvertError> {
    let sent = take_managed_fields(new);
    let mut managers = managers_before(write, live, sent.as_ref());
    if managers.is_empty() && live.is_some_and(exists) {
        return Ok(());
    }
    if !is_identified(new, Some(&write.view(new).shape)) {
        // Nobody can say which item is whose: nothing is tracked, as in Kubernetes.
        return Ok(());
    }
    let live = live.map_or_else(|| Value::Object(Map::new()), without_managed_fields);
    transfer::reconcile(write, &live, &mut managers)?;
    transfer::follow(write, write.manager.name, (&live, new), &mut managers)?;
    cap::collapse_oldest(&mut managers);
    set_managed_fields(new, managers);
    Ok(())
}

/// Whether two objects say the same, times of `managedFields` aside: writing the later over the earlier changes nothing.
pub fn is_same(live: &Value, new: &Value) -> bool {
    order::same(&without_times(live), &without_times(new))
}

/// Sets `metadata.managedFields`, or removes it where nobody owns anything.
pub(super) fn set_managed_fields(object: &mut Value, managers: Managers) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if !managers.is_empty() {
        metadata.insert("managedFields".to_owned(), encode(managers.into_values().collect()));
    }
}

pub(super) fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    take_managed_fields(&mut object);
    object
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Where ownership starts from: what the client sends, so that it can be edited, else what the live object has. A
/// subresource cannot edit it.
fn managers_before<S: Shape>(write: &Write<'_, S>, live: Option<&Value>, sent: Option<&Value>) -> Managers {
    if write.manager.subresource.is_empty() {
        if sent.is_some_and(discards_all) {
            return Managers::new();
        }
        let sent = decode(sent).unwrap_or_default();
        if !sent.is_empty() {
            return by_manager(sent);
        }
    }
    let recorded = live.and_then(|live| live.pointer("/metadata/managedFields"));
    by_manager(decode(recorded).unwrap_or_default())
}

fn discards_all(sent: &Value) -> bool {
    match sent.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

fn exists(live: &Value) -> bool {
    live.pointer("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty())
}

fn without_times(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    object
}
