//! Objects as texts without their managed fields, which are half of an object as it comes from the API.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

/// The operation of managed fields that were applied.
pub(crate) const APPLY: &str = "Apply";

/// The members of an object, which are not read.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// An object without managed fields, and those of them that its own operator applied.
#[derive(Debug)]
pub(crate) struct Slim {
    pub(crate) text: String,
    pub(crate) applied: Option<String>,
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
        let mut object: Members<'_> = serde_json::from_str(text)?;
        let metadata =
            object.get("metadata").map(|metadata| serde_json::from_str::<Option<Members<'_>>>(metadata.get()));
        let mut metadata = metadata.transpose()?.flatten().unwrap_or_default();
        let Some(managed) = metadata.remove("managedFields") else {
            return Ok(Self { text: text.to_owned(), applied: None });
        };
        let applied = applied(managed, manager)?;
        let metadata = to_raw_value(&metadata)?;
        object.insert("metadata".to_owned(), &metadata);
        Ok(Self { text: serde_json::to_string(&object)?, applied })
    }
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
    fn what_has_no_managed_fields_stays_as_it_is() {
        for text in [r#"{"spec": 1}"#, r#"{"metadata":null}"#, r#"{"metadata": {"name" : "x"}}"#] {
            let slim = Slim::of(text, "me").unwrap();
            assert_eq!((slim.text.as_str(), slim.applied), (text, None));
        }
        assert!(Slim::of("5", "me").is_err());
    }
}
