//! Fields that a schema does not know: named, or dropped.

use serde_json::{Map, Value};

use crate::conform::{conform, unknown_fields};
use crate::place::Place;
use crate::{Schema, gojson};

/// What every whole object has, whether its schema says so or not.
const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Drops the fields that the schema does not know, and gives their paths. The root is a whole object.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        if let Some(name) = self.definition_name() {
            return prune_builtin(name, object);
        }
        let mut pruning = Pruning { dropped: Vec::new(), is_metadata_read: false };
        pruning.value(Some(self), object, Place::Start(""), true);
        pruning.dropped
    }

    /// As [`Schema::prune`], for an object whose metadata has its canonical form already.
    pub fn prune_body(&self, object: &mut Value) -> Vec<String> {
        if self.definition_name().is_some() {
            return self.prune(object);
        }
        let mut pruning = Pruning { dropped: Vec::new(), is_metadata_read: true };
        pruning.value(Some(self), object, Place::Start(""), true);
        pruning.dropped
    }

    /// The paths of the fields that the schema does not know: `spec.containers[0].bar`.
    pub fn unknown_fields(&self, object: &Value) -> Vec<String> {
        match self.definition_name() {
            Some(name) => unknown_fields(name, object),
            None => self.prune(&mut object.clone()),
        }
    }

    /// Drops unknown fields from a value that is no whole object: from a default.
    pub(crate) fn prune_value(&self, value: &mut Value) -> Vec<String> {
        let mut pruning = Pruning { dropped: Vec::new(), is_metadata_read: false };
        pruning.value(Some(self), value, Place::Start(""), self.is_embedded_resource());
        pruning.dropped
    }
}

fn prune_builtin(name: &str, object: &mut Value) -> Vec<String> {
    match conform(name, object.clone()) {
        Ok(conformed) => {
            *object = conformed.object;
            conformed.unknown
        }
        // A wrong type is for the decoder to report.
        Err(_) => Vec::new(),
    }
}

/// How many dropped fields are named; the paths of all of them could be far longer than the object.
const DROPPED_MAX: usize = 100;

struct Pruning {
    dropped: Vec<String>,
    /// Whether the metadata of the root is canonical.
    is_metadata_read: bool,
}

impl Pruning {
    fn name(&mut self, dropped: Place<'_>) {
        if self.dropped.len() < DROPPED_MAX {
            self.dropped.push(dropped.to_string());
        }
    }

    /// Without a schema nothing in a map is known.
    fn value(&mut self, schema: Option<&Schema>, value: &mut Value, path: Place<'_>, is_object: bool) {
        match value {
            Value::Object(members) => self.members(schema, members, path, is_object),
            Value::Array(items) => {
                // A list that is kept as it is has nothing that is not known.
                let items_schema = match schema {
                    Some(schema) if schema.preserves_unknown_fields() && schema.items().is_none() => return,
                    schema => schema.and_then(Schema::items),
                };
                for (index, value) in items.iter_mut().enumerate() {
                    let is_object = items_schema.is_some_and(Schema::is_embedded_resource);
                    self.value(items_schema, value, Place::Item(&path, index), is_object);
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, schema: Option<&Schema>, members: &mut Map<String, Value>, path: Place<'_>, is_object: bool) {
        let keeps_unknown = schema.is_some_and(Schema::preserves_unknown_fields);
        members.retain(|name, value| {
            let path = Place::Member(&path, name);
            if is_object && OBJECT_FIELDS.contains(&name.as_str()) {
                if name == "metadata" {
                    self.metadata(value, path);
                }
                return true;
            }
            let Some(schema) = schema else {
                self.name(path);
                return false;
            };
            let node = schema.node();
            if let Some(property) = node.words.properties.get(name) {
                self.value(Some(property), value, path, property.is_embedded_resource());
            } else if node.words.additional_properties.is_some() {
                let additional = schema.additional_properties();
                self.value(additional, value, path, additional.is_some_and(Schema::is_embedded_resource));
            } else if !keeps_unknown {
                self.name(path);
                return false;
            }
            true
        });
    }

    fn metadata(&mut self, metadata: &mut Value, path: Place<'_>) {
        if self.is_metadata_read && matches!(path, Place::Member(Place::Start(""), _)) {
            return;
        }
        if let Ok(conformed) = conform(gojson::object_meta().name, metadata.clone()) {
            conformed.unknown.iter().for_each(|unknown| self.name(Place::Member(&path, unknown)));
            *metadata = conformed.object;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::from_json_schema_props(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            }}}
        }))
        .unwrap()
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "a", "nonsense": 1}, "extra": 1,
            "spec": {
                "size": 1, "sise": 2,
                "any": {"free": {"x": 1}, "known": {"a": "", "b": ""}},
                "map": {"k": {"a": "", "b": ""}},
                "list": [{"a": "", "b": ""}],
                "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "b": 1}, "spec": {}},
            }
        });
        let mut dropped = schema().prune(&mut object);
        dropped.sort();
        let expect = [
            "extra",
            "metadata.nonsense",
            "spec.any.known.b",
            "spec.list[0].b",
            "spec.map.k.b",
            "spec.sise",
            "spec.template.metadata.b",
        ];
        assert_eq!(dropped, expect);
        assert_eq!(object["spec"]["any"], json!({"free": {"x": 1}, "known": {"a": ""}}));
        assert_eq!(object["metadata"], json!({"name": "a"}));
        assert!(schema().prune(&mut object).is_empty());
    }

    #[test]
    fn all_unknown_fields_are_dropped_and_some_named() {
        let mut object = json!({"spec": {}});
        for index in 0..1_000 {
            object["spec"][format!("x{index}")] = json!(1);
        }
        assert_eq!(schema().prune(&mut object).len(), DROPPED_MAX);
        assert_eq!(object, json!({"spec": {}}));
    }

    #[test]
    fn unknown_fields_of_built_in_kinds_are_named() {
        let schema = Schema::of_definition("io.k8s.api.core.v1.ConfigMap");
        assert_eq!(schema.unknown_fields(&json!({"data": {"a": "b"}, "datum": {}})), ["datum"]);
    }
}
