//! The properties of a kind, as its definition describes them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The key that stands for any key of a map.
pub(crate) const KEY: &str = "campaign";
/// How many properties a campaign looks at; kinds that hold whole Pods have thousands.
const PROPERTIES_MAX: usize = 5_000;

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Property {
    /// The way to it: names of fields, [`KEY`] for a key of a map, `0` for an item of a list.
    pub(crate) path: Vec<String>,
    pub(crate) schema: Value,
    /// Whether it can be left out: it is optional, or there is a default.
    pub(crate) can_go: bool,
    /// Whether it holds a value and not only other properties.
    pub(crate) is_leaf: bool,
}

impl Property {
    /// The way to it as a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        self.path
            .iter()
            .fold(String::new(), |pointer, step| format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1")))
    }

    /// Its own name: that of the last field on the way.
    pub(crate) fn name(&self) -> &str {
        let is_name = |step: &&String| **step != KEY && step.parse::<usize>().is_err();
        self.path.iter().rev().find(is_name).map_or("", String::as_str)
    }

    /// The field that it is in.
    pub(crate) fn parent(&self) -> &str {
        self.path.iter().rev().nth(1).map_or("", String::as_str)
    }

    /// What an error of the API calls it: the names of fields on the way, without keys and numbers of items.
    pub(crate) fn dotted(&self) -> String {
        let is_name = |step: &&String| **step != KEY && step.parse::<usize>().is_err();
        self.path.iter().take_while(is_name).cloned().collect::<Vec<_>>().join(".")
    }
}

/// The schema of the objects of a kind in one version; the stored one if none is said.
pub(crate) fn schema(definition: &CustomResourceDefinition, version: Option<&str>) -> Option<(String, Value)> {
    let versions = &definition.spec.versions;
    let wanted = match version {
        Some(version) => versions.iter().find(|it| it.name == version),
        None => versions.iter().find(|it| it.storage),
    }?;
    let schema = wanted.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    Some((wanted.name.clone(), serde_json::to_value(schema).ok()?))
}

/// All properties below `spec`, each before those that it holds.
pub(crate) fn of(schema: &Value) -> Vec<Property> {
    let mut all = Vec::new();
    fields(&schema["properties"]["spec"], &["spec".to_owned()], &mut all);
    all
}

fn fields(schema: &Value, path: &[String], all: &mut Vec<Property>) {
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|required| required.iter().any(|it| it == name));
        let path = [path, std::slice::from_ref(name)].concat();
        walk(field, path, !is_required || !field["default"].is_null(), all);
    }
}

fn walk(schema: &Value, path: Vec<String>, can_go: bool, all: &mut Vec<Property>) {
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    if all.len() < PROPERTIES_MAX {
        all.push(Property { path: path.clone(), schema: schema.clone(), can_go, is_leaf: !has_fields });
    }
    fields(schema, &path, all);
    for (inner, step) in [(&schema["items"], "0"), (&schema["additionalProperties"], KEY)] {
        fields(inner, &[path.as_slice(), &[step.to_owned()]].concat(), all);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_items_and_maps_are_properties_too() {
        let schema = json!({"properties": {"spec": {"required": ["size", "rest"], "properties": {
            "size": {"type": "integer"},
            "rest": {"type": "integer", "default": 1},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "store": {"type": "object", "properties": {"a/b": {"type": "string"}}},
            "users": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }}}});
        let found: Vec<_> = of(&schema).iter().map(|it| (it.pointer(), it.can_go, it.is_leaf)).collect();
        let expected = [
            ("/spec/labels", true, true),
            ("/spec/rest", true, true),
            ("/spec/size", false, true),
            ("/spec/store", true, false),
            ("/spec/store/a~1b", true, true),
            ("/spec/users", true, true),
            ("/spec/users/0/name", true, true),
        ];
        assert_eq!(found, expected.map(|(path, can_go, is_leaf)| (path.to_owned(), can_go, is_leaf)));
    }
}
