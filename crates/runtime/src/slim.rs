//! Objects as texts without their managed fields, which are half of an object as it comes from the API.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The operation of managed fields that were applied.
pub(crate) const APPLY: &str = "Apply";

/// The member that is taken out.
const MANAGED_FIELDS: &str = "managedFields";

/// An object without managed fields, and those of them that its own operator applied.
#[derive(Debug)]
pub(crate) struct Slim {
    pub(crate) text: String,
    pub(crate) applied: Option<String>,
}

/// Of an object, only where its managed fields are.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow)]
    manager: Option<Cow<'a, str>>,
    #[serde(borrow)]
    operation: Option<Cow<'a, str>>,
    #[serde(borrow)]
    subresource: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl Slim {
    /// Takes the managed fields out of an object; `manager` is the name of its operator.
    pub(crate) fn of(text: &str, manager: &str) -> serde_json::Result<Self> {
        let Outline { metadata } = serde_json::from_str(text)?;
        let Some(managed) = metadata.and_then(|metadata| metadata.managed_fields) else {
            return Ok(Self { text: text.to_owned(), applied: None });
        };
        let applied = applied(managed, manager)?;
        let slim = without(text, managed).map_or_else(|| rewritten(text), Ok)?;
        Ok(Self { text: slim, applied })
    }
}

/// `text` but for the managed fields, whose value is `managed`, a part of it. `None` if their name is written with escapes.
fn without(text: &str, managed: &RawValue) -> Option<String> {
    let start = managed.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start.checked_add(managed.get().len())?;
    let before = text.get(..start)?.trim_end().strip_suffix(':')?.trim_end();
    let before = before.strip_suffix('"')?.strip_suffix(MANAGED_FIELDS)?.strip_suffix('"')?.trim_end();
    let after = text.get(end..)?.trim_start();
    // One comma goes with it, if there is one.
    let (before, after) = match before.strip_suffix(',') {
        Some(before) => (before, after),
        None => (before, after.strip_prefix(',').unwrap_or(after)),
    };
    Some([before, after].concat())
}

/// The same, by reading all of it.
fn rewritten(text: &str) -> serde_json::Result<String> {
    let mut object: Value = serde_json::from_str(text)?;
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(MANAGED_FIELDS);
    }
    serde_json::to_string(&object)
}

/// The fields that `manager` applied. What was applied to a subresource is nobody's to compare.
fn applied(managed: &RawValue, manager: &str) -> serde_json::Result<Option<String>> {
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_str(managed.get())?;
    let is_ours = |entry: &Entry<'_>| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some(APPLY)
            && entry.subresource.as_deref().is_none_or(str::is_empty)
    };
    let fields = entries.into_iter().flatten().find(is_ours).and_then(|entry| entry.fields);
    Ok(fields.map(|fields| fields.get().to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_managed_fields_are_taken_out_and_only_what_was_applied_is_kept() {
        let entry = |manager: &str, operation: &str, subresource: Option<&str>| {
            let fields = json!({"f:data": {(format!("f:{manager}-{operation}")): {}}});
            json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields})
        };
        let entries = [
            entry("kubectl", "Apply", None),
            entry("me", "Update", None),
            entry("me", "Apply", Some("status")),
            entry("me", "Apply", Some("")),
        ];
        let metadata = json!({"name": "x", "labels": {"managedFields": "\"é\n"}});
        let mut object =
            json!({"kind": "Thing", "metadata": metadata, "spec": {"metadata": {"managedFields": [1.50]}}});
        let wanted = object.clone();
        object["metadata"]["managedFields"] = entries.into();
        let slim = Slim::of(&object.to_string(), "me").unwrap();
        assert_eq!(serde_json::from_str::<Value>(&slim.text).unwrap(), wanted);
        assert_eq!(slim.applied.as_deref(), Some(r#"{"f:data":{"f:me-Apply":{}}}"#));
        assert_eq!(Slim::of(&object.to_string(), "you").unwrap().applied, None);
    }

    #[test]
    fn managed_fields_are_found_wherever_they_are() {
        let managed = r#""managedFields" : [{"manager": "me", "operation": "Apply", "fieldsV1": {"f:a\"]": {}}}]"#;
        let escaped = managed.replace("managed", "\\u006danaged");
        let others = r#""name": "x", "labels": {"a": "},\"managedFields\":["}"#;
        let metadata = [
            format!("{{{managed}, {others}}}"),
            format!("{{ {others} ,\n{managed}\n}}"),
            format!(r#"{{"uid": "u", {managed} , {others}}}"#),
            format!("{{{managed}}}"),
            format!("{{{others}, {escaped}}}"),
        ];
        for metadata in metadata {
            let text = format!(r#"{{"kind": "Thing", "metadata": {metadata}, "spec": {{}}}}"#);
            let mut wanted: Value = serde_json::from_str(&text).unwrap();
            wanted["metadata"].as_object_mut().unwrap().remove("managedFields");
            let slim = Slim::of(&text, "me").unwrap();
            assert_eq!(serde_json::from_str::<Value>(&slim.text).unwrap(), wanted, "{text}");
            assert_eq!(slim.applied.as_deref(), Some(r#"{"f:a\"]": {}}"#), "{text}");
        }
    }

    #[test]
    fn what_has_no_managed_fields_stays_as_it_is() {
        for text in [r#"{"spec": 1}"#, r#"{"metadata":null}"#, r#"{"metadata": {"name" : "x"}}"#] {
            let slim = Slim::of(text, "me").unwrap();
            assert_eq!((slim.text.as_str(), slim.applied), (text, None));
        }
        assert!(Slim::of("5", "me").is_err());
    }
}
