//! Defaults that a schema gives.

use serde_json::{Map, Value};

use crate::Schema;

impl Schema {
    /// Fills in the defaults of a custom schema, and drops `null` where it is neither allowed nor has a default.
    ///
    /// The defaults of built-in kinds are not in their schemas: see `defaults`.
    pub fn default(&self, value: &mut Value) {
        if self.definition_name().is_none() {
            drop_nulls(Some(self), value);
            fill(Some(self), value);
        }
    }
}

fn fill(schema: Option<&Schema>, value: &mut Value) {
    let Some(schema) = schema else { return };
    match value {
        Value::Object(members) => {
            fill_absent(schema, members);
            for (name, value) in members.iter_mut() {
                let member = schema.member(name);
                fill_null(member, value);
                fill(member, value);
            }
        }
        Value::Array(items) => {
            for value in items {
                fill_null(schema.items(), value);
                fill(schema.items(), value);
            }
        }
        _ => {}
    }
}

fn fill_absent(schema: &Schema, members: &mut Map<String, Value>) {
    for (name, property) in schema.properties() {
        if let Some(default) = property.default_value().filter(|_| !members.contains_key(name)) {
            members.insert(name.to_owned(), default.clone());
        }
    }
}

fn fill_null(schema: Option<&Schema>, value: &mut Value) {
    if let Some(default) =
        schema.filter(|schema| value.is_null() && !schema.is_nullable()).and_then(Schema::default_value)
    {
        *value = default.clone();
    }
}

fn drop_nulls(schema: Option<&Schema>, value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let member = schema.and_then(|schema| schema.member(name));
            let is_refused = member.is_some_and(|member| !member.is_nullable() && member.default_value().is_none());
            if value.is_null() && is_refused {
                return false;
            }
            drop_nulls(member, value);
            true
        }),
        Value::Array(items) => {
            for value in items {
                drop_nulls(schema.and_then(Schema::items), value);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_fill_absent_values_and_refused_nulls() {
        let schema = Schema::from_json_schema_props(&json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "default": {}, "properties": {
                "size": {"type": "integer", "default": 3},
                "mode": {"type": "string", "default": "x", "nullable": true},
                "name": {"type": "string"},
                "list": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer", "default": 80}}}},
                "map": {"type": "object", "additionalProperties": {"type": "string", "default": "d"}},
            }}}
        }))
        .unwrap();
        let check = |mut given: Value, expect: Value| {
            schema.default(&mut given);
            assert_eq!(given, expect);
        };
        check(json!({}), json!({"spec": {"size": 3, "mode": "x"}}));
        check(
            json!({"spec": {"size": null, "mode": null, "name": null, "list": [{}], "map": {"a": null}}}),
            json!({"spec": {"size": 3, "mode": null, "list": [{"port": 80}], "map": {"a": "d"}}}),
        );
    }
}
