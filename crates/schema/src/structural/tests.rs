//! Schemas that are accepted, and those that are not, with the reason.

use serde_json::{Value, json};

use crate::Schema;

fn refused(schema: Value, expect: &[&str]) {
    let errors = Schema::from_json_schema_props(&schema).expect_err("the schema must be refused");
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expect);
}

fn spec(schema: Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

#[test]
fn structural_schemas_are_accepted() {
    let accepted = [
        json!({"type": "object"}),
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        spec(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})),
        spec(json!({"x-kubernetes-int-or-string": true,
                    "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}]})),
        spec(json!({"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]})),
        spec(
            json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        ),
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}}}),
    ];
    for schema in accepted {
        assert!(Schema::from_json_schema_props(&schema).is_ok(), "{schema}");
    }
}

#[test]
fn types_must_be_given() {
    refused(json!({}), &["type: Required value: must not be empty at the root"]);
    refused(
        json!({"type": "array", "items": {"type": "string"}}),
        &[r#"type: Invalid value: "array": must be object at the root"#],
    );
    refused(
        spec(json!({"type": "object", "properties": {"a": {}}})),
        &["properties[spec].properties[a].type: Required value: must not be empty for specified object fields"],
    );
    refused(spec(json!({"type": "array"})), &["properties[spec].items: Required value: must be specified"]);
    refused(
        spec(json!({"type": "text"})),
        &[
            r#"properties[spec].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
}

#[test]
fn structure_stays_out_of_alternatives() {
    refused(
        spec(json!({"type": "object", "properties": {"a": {"type": "string"}},
                    "oneOf": [{"properties": {"a": {"type": "string"}}}]})),
        &["properties[spec].oneOf[0].properties[a].type: Forbidden: must be empty to be structural"],
    );
    refused(
        spec(json!({"type": "object", "anyOf": [{"properties": {"b": {"minLength": 1}}}]})),
        &[
            "properties[spec].properties[b]: Required value: because it is defined in properties[spec].anyOf[0].properties[b]",
        ],
    );
}

#[test]
fn metadata_is_left_alone() {
    refused(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
        &[
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
}

#[test]
fn unsupported_keywords_are_refused() {
    refused(
        spec(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
        ),
        &["properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    );
    refused(
        spec(json!({"type": "object", "$ref": "#/a"})),
        &["properties[spec].$ref: Forbidden: $ref is not supported"],
    );
}

#[test]
fn list_maps_need_their_keys() {
    refused(
        spec(json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})),
        &[
            "properties[spec].items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    refused(
        spec(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map"})),
        &[
            r#"properties[spec].items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map"#,
            "properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
}

#[test]
fn defaults_must_fit() {
    refused(
        spec(json!({"type": "integer", "default": "x"})),
        &[r#"properties[spec].default: Invalid value: "string":  in body must be of type integer: "string""#],
    );
    refused(
        spec(json!({"type": "object", "default": {"a": 1}})),
        &[r#"properties[spec].default: Invalid value: {"a":1}: must not have unknown fields"#],
    );
}
