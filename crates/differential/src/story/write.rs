//! Requests that write, most of them wrong in some way.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::mutate::{any_path, mutate, other, part};
use super::{Kind, MANAGERS};

/// A new object. One with a name that the server makes is never kept, since nobody would know it.
pub(super) fn create(kind: &Kind, mut object: Value, random: &mut StdRng) -> Call {
    if random.random_bool(0.6) {
        mutate(&mut object, random);
    }
    let mut query = options(random);
    if random.random_range(0..12) == 0
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && let Some(name) = metadata.remove("name")
    {
        metadata.insert("generateName".to_owned(), format!("{}-g-", name.as_str().unwrap_or_default()).into());
        query.push_str("&dryRun=All");
    }
    Call::new("create", "POST", format!("{}?{query}", kind.path), Some(object))
}

/// The object as it was read, or as it was created, changed.
pub(super) fn update(path: String, live: &Value, random: &mut StdRng) -> Call {
    let mut object = live.clone();
    if random.random_range(0..8) == 0 {
        // Metadata alone: what counts as a new generation differs from kind to kind.
        let field = ["annotations", "labels"].choose(random).copied().unwrap_or("labels");
        object["metadata"][field]["touched"] = json!(["one", "two"].choose(random));
        return Call::new("update", "PUT", path, Some(object));
    }
    for _ in 0..random.random_range(0..3) {
        mutate(&mut object, random);
    }
    if random.random_range(0..4) == 0
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.remove("resourceVersion");
    }
    let query = options(random);
    Call::new("update", "PUT", format!("{path}?{query}"), Some(object))
}

/// A JSON merge patch.
pub(super) fn merge_patch(path: String, base: &Value, random: &mut StdRng) -> Call {
    patch("merge-patch", "application/merge-patch+json", path, change(base, random), random)
}

/// A strategic merge patch.
pub(super) fn strategic_patch(path: String, base: &Value, random: &mut StdRng) -> Call {
    let body = directed(change(base, random), random);
    patch("strategic-patch", "application/strategic-merge-patch+json", path, body, random)
}

/// A JSON patch.
pub(super) fn json_patch(path: String, live: &Value, random: &mut StdRng) -> Call {
    patch("json-patch", "application/json-patch+json", path, operations(live, random), random)
}

fn patch(verb: &'static str, content: &'static str, path: String, body: Value, random: &mut StdRng) -> Call {
    let query = options(random);
    Call { content, ..Call::new(verb, "PATCH", format!("{path}?{query}"), Some(body)) }
}

/// Some of the object, applied by one of several managers.
pub(super) fn apply(path: String, base: &Value, random: &mut StdRng) -> Call {
    let mut object = part(base, random);
    for field in ["apiVersion", "kind"] {
        object[field] = base[field].clone();
    }
    object["metadata"] =
        json!({ "name": base["metadata"]["name"], "labels": part(&base["metadata"]["labels"], random) });
    if random.random_bool(0.5) {
        mutate(&mut object, random);
    }
    let force = if random.random_bool(0.3) { "&force=true" } else { "" };
    let dry = if random.random_bool(0.1) { "&dryRun=All" } else { "" };
    let manager = MANAGERS.choose(random).unwrap_or(&"alpha");
    let content = "application/apply-patch+yaml";
    Call { content, ..Call::new("apply", "PATCH", format!("{path}?fieldManager={manager}{force}{dry}"), Some(object)) }
}

/// The end of an object, with every option.
pub(super) fn delete(path: String, random: &mut StdRng) -> Call {
    let mut body = json!({});
    if random.random_bool(0.5) {
        body["propagationPolicy"] = json!(["Foreground", "Background", "Orphan", "Sideways"].choose(random));
    }
    if random.random_bool(0.3) {
        body["gracePeriodSeconds"] = json!([0, 1, 30, -1].choose(random));
    }
    if random.random_bool(0.2) {
        body["preconditions"] = json!({"resourceVersion": "1"});
    }
    if random.random_bool(0.2) {
        body["dryRun"] = json!(["All"]);
    }
    // Where there is a body, the query does not count.
    let query = if random.random_bool(0.1) { "?dryRun=All" } else { "" };
    Call::new("delete", "DELETE", format!("{path}{query}"), Some(body))
}

fn options(random: &mut StdRng) -> String {
    let validation = ["", "", "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore"];
    let mut query = validation.choose(random).copied().unwrap_or_default().to_owned();
    if random.random_range(0..10) == 0 {
        query.push_str("&dryRun=All");
    }
    if random.random_bool(0.5) {
        query.push_str("&fieldManager=");
        query.push_str(MANAGERS.choose(random).unwrap_or(&"alpha"));
    }
    if random.random_range(0..40) == 0 {
        let wrong = ["&dryRun=Some", "&fieldValidation=Loose", "&fieldManager=a%00b", "&force=true", "&pretty=true"];
        query.push_str(wrong.choose(random).unwrap_or(&""));
    }
    query
}

/// A patch that says one place of the object anew.
fn change(base: &Value, random: &mut StdRng) -> Value {
    let path = any_path(base, random);
    let value = path.iter().try_fold(base, |value, step| match value {
        Value::Object(map) => map.get(step),
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        _ => None,
    });
    let mut value = other(value.unwrap_or(&Value::Null), random);
    for step in path.iter().rev() {
        // A patch cannot name a position: the list is said anew, with one item.
        value = if step.parse::<usize>().is_ok() { json!([value]) } else { json!({ step.as_str(): value }) };
    }
    value
}

/// Now and then with a directive of strategic patches.
fn directed(mut patch: Value, random: &mut StdRng) -> Value {
    if !patch.is_object() {
        return patch;
    }
    match random.random_range(0..8) {
        0 => patch["$patch"] = json!(["replace", "delete", "merge", "nonsense"].choose(random)),
        1 => patch["metadata"] = json!({"$deleteFromPrimitiveList/finalizers": ["a/b"]}),
        2 => patch["spec"] = json!({"template": {"spec": {"containers": [{"name": "two", "$patch": "delete"}]}}}),
        3 => {
            patch["spec"] = json!({"template": {"spec": {"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}],
            "containers": [{"name": "one", "image": "z:9"}]}}})
        }
        4 => patch["spec"] = json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        _ => {}
    }
    patch
}

fn operations(live: &Value, random: &mut StdRng) -> Value {
    let mut operations = Vec::new();
    for _ in 0..random.random_range(1..3) {
        let pointer = |random: &mut StdRng| {
            let path = any_path(live, random);
            path.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect::<String>()
        };
        let (path, mut from) = (pointer(random), pointer(random));
        // What a server gives by itself would end up where it is compared.
        if ["uid", "resourceVersion", "creationTimestamp", "managedFields"].iter().any(|name| from.contains(name)) {
            from = "/metadata/name".to_owned();
        }
        let value = other(&json!("x"), random);
        operations.push(match random.random_range(0..6) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "test", "path": path, "value": value}),
            2 => json!({"op": "move", "from": from, "path": path}),
            3 => json!({"op": "copy", "from": from, "path": "/metadata/annotations/copied"}),
            4 => json!({"op": "replace", "path": path, "value": value}),
            _ => json!({"op": "add", "path": path, "value": value}),
        });
    }
    operations.into()
}
