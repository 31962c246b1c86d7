//! Shapes read from OpenAPI documents.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_merge::{ListType, MapType, Member, OpenApiShape, Shape};

fn document() -> Arc<Value> {
    Arc::new(json!({"components": {"schemas": {
        "Node": {"type": "object", "properties": {
            "value": {"type": "string", "default": "v"},
            "next": {"$ref": "#/components/schemas/Node"},
            "wrapped": {"allOf": [{"$ref": "#/components/schemas/Node"}], "x-kubernetes-map-type": "atomic", "default": {}},
            "a/b~c": {"type": "array", "x-kubernetes-list-type": "set"},
            "old": {"type": "array", "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "id"},
            "lost": {"$ref": "#/components/schemas/Gone"},
        }},
        "Loop": {"$ref": "#/components/schemas/Loop"},
        "Closed": {"type": "object", "additionalProperties": false, "properties": {"a": {}}},
        "Open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}},
        "Empty": {"type": "object"},
        "Map": {"type": "object", "additionalProperties": {"type": "integer"}},
    }}}))
}

fn schema(name: &str) -> OpenApiShape {
    OpenApiShape::at(document(), &format!("/components/schemas/{name}")).expect("the schema is there")
}

#[test]
fn references_are_followed_as_far_as_asked() {
    let deep = schema("Node").field("next").and_then(|next| next.field("next")).and_then(|next| next.field("value"));
    assert!(deep.is_some());
    assert!(schema("Node").field("lost").is_none());
    assert!(OpenApiShape::at(document(), "/components/schemas/Loop").is_none());
    assert!(OpenApiShape::at(document(), "/components/schemas/Gone").is_none());
}

#[test]
fn what_stands_beside_a_reference_counts() {
    let wrapped = schema("Node").field("wrapped").expect("the member is there");
    assert_eq!(wrapped.map_type(), MapType::Atomic);
    assert_eq!(wrapped.membership("value"), Member::Declared);
    assert_eq!(schema("Node").map_type(), MapType::Granular);
    assert_eq!(schema("Node").field_default("wrapped"), Some(json!({})));
    assert_eq!(schema("Node").field_default("value"), Some(json!("v")));
    assert_eq!(schema("Node").field_default("next"), None);
}

#[test]
fn lists_have_the_type_that_their_extensions_say() {
    let list = |name: &str| schema("Node").field(name).expect("the member is there");
    assert_eq!(list("a/b~c").list_type(), ListType::Set);
    assert_eq!(list("old").list_type(), ListType::Map(&["id".to_owned()]));
    assert!(list("old").patch_strategy().merge && list("old").patch_strategy().retain_keys);
    assert_eq!(list("value").list_type(), ListType::Atomic);
}

#[test]
fn members_are_declared_free_or_undeclared() {
    let rows = [
        ("Closed", "a", Member::Declared),
        ("Closed", "b", Member::Undeclared),
        ("Node", "b", Member::Undeclared),
        ("Open", "a", Member::Declared),
        ("Open", "b", Member::Free),
        ("Empty", "b", Member::Free),
        ("Map", "b", Member::Free),
    ];
    for (name, member, expect) in rows {
        assert_eq!(schema(name).membership(member), expect, "{member} of {name}");
    }
    assert!(schema("Map").field("b").is_some());
    assert!(schema("Open").field("b").is_none());
}
