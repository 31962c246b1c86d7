//! The metadata of an object that is plain JSON.

use serde_json::{Map, Value};

/// Reading and writing the metadata that every object has.
pub(crate) trait Object {
    /// The metadata; `None` if there is none or it is not a map.
    fn metadata(&self) -> Option<&Map<String, Value>>;
    /// The metadata, made if it is not there.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;

    /// A text of the metadata; empty if it is not there.
    fn meta(&self, field: &str) -> &str {
        self.metadata().and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
    }

    /// The name; empty if there is none.
    fn name(&self) -> &str {
        self.meta("name")
    }

    /// The namespace; empty if there is none.
    fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    /// The unique id; empty if there is none.
    fn uid(&self) -> &str {
        self.meta("uid")
    }

    /// The version of the stored object; empty if there is none.
    fn resource_version(&self) -> &str {
        self.meta("resourceVersion")
    }

    /// The number of the wanted state.
    fn generation(&self) -> i64 {
        self.meta_integer("generation").unwrap_or_default()
    }

    /// A number of the metadata.
    fn meta_integer(&self, field: &str) -> Option<i64> {
        self.metadata()?.get(field)?.as_i64()
    }

    /// A member of the labels.
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("labels")?.get(key)?.as_str()
    }

    /// A member of the annotations.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata()?.get("annotations")?.get(key)?.as_str()
    }

    /// What must still happen before the object may go.
    fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.metadata().and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
        finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether the object is on its way out.
    fn is_deleting(&self) -> bool {
        !self.meta("deletionTimestamp").is_empty()
    }

    /// Writes a member of the metadata; `Null` removes it.
    fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        match value.into() {
            Value::Null => self.metadata_mut().remove(field),
            value => self.metadata_mut().insert(field.to_owned(), value),
        };
    }

    /// Writes the finalizers; none removes the list.
    fn set_finalizers(&mut self, finalizers: Vec<String>) {
        let list = if finalizers.is_empty() { Value::Null } else { Value::from(finalizers) };
        self.set_meta("finalizers", list);
    }
}

impl Object for Value {
    fn metadata(&self) -> Option<&Map<String, Value>> {
        self.get("metadata")?.as_object()
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        if !self.is_object() {
            *self = Value::Object(Map::new());
        }
        let Value::Object(members) = self else { unreachable!("made a map above") };
        let metadata = members.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        metadata.as_object_mut().expect("made a map above")
    }
}

/// The member of a map at `field`, given to `self` from `from`, or removed if it is not there.
pub(crate) fn take_over(object: &mut Value, from: &Value, field: &str) {
    let Some(members) = object.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => members.insert(field.to_owned(), value.clone()),
        None => members.remove(field),
    };
}

/// The machine's time as objects carry it, for what the server notes about itself. Whatever clients and controllers act
/// on has the time of the server's clock.
pub(crate) fn now() -> String {
    timestamp(jiff::Timestamp::now())
}

/// A time as objects carry it: whole seconds, UTC.
pub(crate) fn timestamp(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_made_when_written() {
        let mut object = json!({"metadata": null});
        object.set_meta("name", "a");
        object.set_finalizers(vec!["f".into()]);
        assert_eq!(object, json!({"metadata": {"name": "a", "finalizers": ["f"]}}));
        object.set_finalizers(vec![]);
        object.set_meta("name", Value::Null);
        assert_eq!(object, json!({"metadata": {}}));
    }

    #[test]
    fn times_are_whole_seconds() {
        let time: jiff::Timestamp = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(timestamp(time), "2026-01-02T03:04:05Z");
    }
}
