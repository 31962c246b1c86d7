//! Values against schemas, with the text of every refusal.

use serde_json::{Value, json};

use crate::Schema;

fn schema() -> Schema {
    Schema::from_json_schema_props(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 16},
                "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5},
                "count": {"type": "integer", "format": "uint32"},
                "share": {"type": "number", "format": "float"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                "when": {"type": "string", "format": "date-time"},
                "port": {"x-kubernetes-int-or-string": true},
                "maybe": {"type": "string", "nullable": true},
                "choice": {"type": "string", "nullable": true, "enum": ["a", null]},
                "tags": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "port": {"type": "integer", "minimum": 1}}}},
                "labels": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "string"}},
                "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                           "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "not": {"type": "string", "not": {"enum": ["x"]}},
            }
        }}
    }))
    .unwrap()
}

fn check(spec: Value, expect: &[&str]) {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "a"}, "spec": spec});
    let errors: Vec<String> = schema().validate(&object, None, "").iter().map(ToString::to_string).collect();
    assert_eq!(errors, expect);
}

#[test]
fn integers_are_whole_and_fit_their_format() {
    let whole = |detail: &str| format!("<nil>: Invalid value: \"\": Checked value must be of type integer {detail}");
    check(json!({"size": 3.0}), &[]);
    check(
        json!({"size": 4_294_967_296_i64}),
        &[
            "spec.size: Invalid value: 4294967296: spec.size in body should be less than or equal to 16",
            &whole("with format int32 in spec.size"),
        ],
    );
    check(
        json!({"ports": [{"name": "a", "port": 1.5}]}),
        &[
            r#"spec.ports[0].port: Invalid value: "number": spec.ports[0].port in body must be of type integer: "number""#,
            &whole("(default format) in spec.ports[0].port"),
        ],
    );
}

#[test]
fn only_formats_of_the_type_have_a_range() {
    check(json!({"count": -5_000_000_000_i64, "share": 1e38}), &[]);
    check(
        json!({"count": 1e19, "share": -1e39}),
        &[
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.count"#,
            r#"<nil>: Invalid value: "": Checked value must be of type number with format float in spec.share"#,
        ],
    );
}

#[test]
fn values_that_fit_pass() {
    check(
        json!({
            "size": 3, "ratio": 1.5, "mode": "a", "name": "abc", "when": "2026-01-02T03:04:05Z", "port": "http", "maybe": null,
            "tags": ["a"], "ports": [{"name": "a", "port": 1}], "labels": {"a": "b"}, "either": {"a": ""}, "not": "y"
        }),
        &[],
    );
    check(json!({"size": 3.0, "port": 80}), &[]);
}

#[test]
fn types_are_checked() {
    check(
        json!({"size": "x"}),
        &[r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#],
    );
    check(
        json!({"size": 1.5}),
        &[
            r#"spec.size: Invalid value: "float64": spec.size in body must be of type int32: "float64""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.size"#,
        ],
    );
    check(
        json!({"port": true}),
        &[r#"spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#],
    );
    check(
        json!({"mode": null}),
        &[
            r#"spec.mode: Invalid value: "null": spec.mode in body must be of type string: "null""#,
            r#"spec.mode: Unsupported value: null: supported values: "a", "b""#,
        ],
    );
    check(
        json!({"when": "soon"}),
        &[r#"spec.when: Invalid value: "soon": spec.when in body must be of type date-time: "soon""#],
    );
}

#[test]
fn bounds_are_checked() {
    check(json!({"size": 0}), &["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"]);
    check(json!({"size": 17}), &["spec.size: Invalid value: 17: spec.size in body should be less than or equal to 16"]);
    check(json!({"ratio": 0}), &["spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0"]);
    check(json!({"ratio": 0.7}), &["spec.ratio: Invalid value: 0.7: spec.ratio in body should be a multiple of 0.5"]);
    check(
        json!({"name": "a"}),
        &[r#"spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long"#],
    );
    check(json!({"name": "abcde"}), &["spec.name: Too long: may not be more than 4 bytes"]);
    check(json!({"name": "AB"}), &[r#"spec.name: Invalid value: "AB": spec.name in body should match '^[a-z]+$'"#]);
    check(json!({"tags": []}), &["spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items"]);
    check(json!({"tags": ["a", "b", "c"]}), &["spec.tags: Too many: 3: must have at most 2 items"]);
    check(
        json!({"labels": {}}),
        &["spec.labels: Invalid value: 0: spec.labels in body should have at least 1 properties"],
    );
    check(json!({"choice": null}), &[r#"spec.choice: Unsupported value: null: supported values: "a", "null""#]);
    check(json!({"mode": "c"}), &[r#"spec.mode: Unsupported value: "c": supported values: "a", "b""#]);
}

#[test]
fn members_are_checked() {
    let errors: Vec<String> = schema().validate(&json!({}), None, "").iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["spec: Required value"]);
    check(json!({"ports": [{}]}), &["spec.ports[0].name: Required value"]);
    check(
        json!({"labels": {"a": 1}}),
        &[r#"spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer""#],
    );
}

#[test]
fn items_may_not_repeat() {
    check(json!({"tags": ["a", "a"]}), &[r#"spec.tags[1]: Duplicate value: "a""#]);
    check(json!({"ports": [{"name": "a"}, {"name": "a"}]}), &[r#"spec.ports[1]: Duplicate value: {"name":"a"}"#]);
}

#[test]
fn alternatives_are_counted() {
    check(
        json!({"either": {"a": "", "b": ""}}),
        &[
            r#"<nil>: Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        json!({"either": {}}),
        &[
            r#"<nil>: Invalid value: "": "spec.either" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.either.a: Required value",
        ],
    );
    check(json!({"not": "x"}), &[r#"<nil>: Invalid value: "": "spec.not" must not validate the schema (not)"#]);
}

#[test]
fn what_did_not_change_is_not_refused_again() {
    let old = json!({"spec": {"size": 99, "ports": [{"name": "a", "port": 0}, {"name": "b", "port": 1}]}});
    let check = |new: Value, expect: &[&str]| {
        let errors: Vec<String> = schema().validate(&new, Some(&old), "").iter().map(ToString::to_string).collect();
        assert_eq!(errors, expect);
    };
    check(
        json!({"spec": {"size": 99, "mode": "a", "ports": [{"name": "b", "port": 2}, {"name": "a", "port": 0}]}}),
        &[],
    );
    check(
        json!({"spec": {"size": 98}}),
        &["spec.size: Invalid value: 98: spec.size in body should be less than or equal to 16"],
    );
}
