//! CEL and JSON paths: read, checked, evaluated.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use windlass_store::Store;

use super::line;
use crate::{
    auth::{Auth, User},
    cel::{Authority, Expression, Facts, Names, Purpose, ResourceQuestion, Rules},
    codec::parse_json,
    jsonpath::JsonPath,
};

/// The schema of objects whose rules are tried.
static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "ratio": {"type": "number"}, "name": {"type": "string"}, "on": {"type": "boolean"},
        "time": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
        "list": {"type": "array", "items": {"type": "integer"}}, "texts": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "nested": {"type": "array", "items": {"type": "object", "properties": {
            "key": {"type": "string"}, "values": {"type": "array", "items": {"type": "string"}}}}},
        "port": {"x-kubernetes-int-or-string": true},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }})
});

static AUTH: LazyLock<Arc<Auth>> = LazyLock::new(|| Arc::new(Auth::new(Store::in_memory())));

/// A variable.
static VARIABLES: LazyLock<[(String, Expression); 1]> = LazyLock::new(|| {
    let names = Names { purpose: Purpose::Variable, ..Names::default() };
    [("first".to_owned(), Expression::compile("object", names).expect("the name is known"))]
});

/// What an expression can be for.
const PURPOSES: [Purpose; 3] = [Purpose::Variable, Purpose::Configuration, Purpose::Patch];

/// An expression, the object that it sees and the object before, on a line each.
pub(super) fn cel(bytes: &[u8]) {
    let (text, rest) = line(bytes);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (new, old) = line(rest);
    let object = |text| parse_json(text).map(|document| document.value).unwrap_or_else(|_| json!({}));
    let (new, old) = (object(new), object(old));
    rule(text, &new, &old);
    for purpose in PURPOSES {
        let names = Names { params: true, variables: Some(&*VARIABLES), purpose, known: None };
        let Ok(expression) = Expression::compile(text, names) else { continue };
        let request = json!({"object": new, "oldObject": old, "operation": "UPDATE", "userInfo": {"username": "ann"}});
        let resource = ResourceQuestion { resource: "pods".to_owned(), ..ResourceQuestion::default() };
        let authority = Authority { auth: Arc::clone(&AUTH), user: User::master("ann"), resource };
        let facts = Facts::new(&request, authority).with_params(&old);
        let _ = expression.evaluate(&facts.with_variables(&*VARIABLES));
    }
}

fn rule(text: &str, new: &Value, old: &Value) {
    let mut schema = SCHEMA.clone();
    schema["x-kubernetes-validations"] = json!([{"rule": text, "message": "no", "messageExpression": text}]);
    if Rules::compile(&schema).is_err() {
        schema["x-kubernetes-validations"] = json!([{"rule": text, "message": "no"}]);
    }
    if let Ok(rules) = Rules::compile(&schema) {
        let findings = rules.check(new, Some(old));
        assert_eq!(rules.check(new, Some(old)), findings, "a rule says the same every time");
    }
}

/// A path and a value, on a line each.
pub(super) fn jsonpath(bytes: &[u8]) {
    let (path, value) = line(bytes);
    let Ok(Ok(path)) = std::str::from_utf8(path).map(JsonPath::parse) else { return };
    let value = parse_json(value).map(|document| document.value).unwrap_or_default();
    let found = path.find(&value);
    assert_eq!(path.first(&value), found.first().copied());
}
