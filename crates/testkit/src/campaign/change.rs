//! A spec with one property changed.

use serde_json::{Map, Value};
use windlass_core::sample::{self, Dice, Fill};

/// `spec` with `value` at `path`, or without what is there; what is missing on the way is made after `schema`, as little of
/// it as can be. `None` if there is no such way.
pub(crate) fn changed(schema: &Value, spec: &Value, path: &[String], value: Option<&Value>) -> Option<Value> {
    let Some((step, rest)) = path.split_first() else { return value.cloned() };
    let mut spec = spec.clone();
    if schema["type"] == "array" {
        let items = spec.as_array_mut()?;
        let index: usize = step.parse().ok()?;
        if items.len() <= index {
            items.push(minimal(&schema["items"]));
        }
        let item = items.get_mut(index)?;
        *item = changed(&schema["items"], item, rest, value)?;
        return Some(spec);
    }
    let inner = schema["properties"].get(step).unwrap_or(&schema["additionalProperties"]);
    let fields = spec.as_object_mut()?;
    if rest.is_empty() && value.is_none() {
        fields.remove(step)?;
        return Some(spec);
    }
    let there = fields.get(step).filter(|there| !there.is_null()).cloned();
    let there = there.unwrap_or_else(|| if rest.is_empty() { Value::Null } else { minimal(inner) });
    let new = changed(inner, &there, rest, value)?;
    choose(schema, fields, step);
    fields.insert(step.clone(), new);
    Some(spec)
}

/// Of fields of which one may be there, only `chosen` stays.
fn choose(schema: &Value, fields: &mut Map<String, Value>, chosen: &str) {
    let names = |variant: &Value| -> Vec<String> {
        let names = variant["required"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let variants: Vec<Vec<String>> = schema["oneOf"].as_array().into_iter().flatten().map(names).collect();
    if variants.iter().any(|names| names.iter().any(|name| name == chosen)) {
        let others = variants.iter().flatten().filter(|name| *name != chosen);
        others.for_each(|name| drop(fields.remove(name)));
    }
}

/// The least that fits a schema.
pub(crate) fn minimal(schema: &Value) -> Value {
    sample::value(schema, Fill::Nothing, &mut Dice::new(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, value: Option<Value>, expected: Option<Value>) {
        let schema = json!({"type": "object", "properties": {
            "size": {"type": "integer"},
            "users": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "integer", "minimum": 7, "maximum": 7}, "name": {"type": "string"}}}},
            "store": {"type": "object", "properties": {"disk": {"type": "string"}, "cloud": {"type": "string"}},
                      "oneOf": [{"required": ["disk"]}, {"required": ["cloud"]}]},
        }});
        let spec = json!({"size": 1, "store": {"disk": "a"}});
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        assert_eq!(changed(&schema, &spec, &path, value.as_ref()), expected, "{path:?}");
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        check("size", Some(json!(2)), Some(json!({"size": 2, "store": {"disk": "a"}})));
        check("size", None, Some(json!({"store": {"disk": "a"}})));
        check(
            "users.0.name",
            Some(json!("x")),
            Some(json!({"size": 1, "store": {"disk": "a"}, "users": [{"id": 7, "name": "x"}]})),
        );
        check("store.cloud", Some(json!("b")), Some(json!({"size": 1, "store": {"cloud": "b"}})));
        check("users", None, None);
    }
}
