//! Strategic merge patches made from the object that they are for, with directives.

use serde_json::{Map, Value, json};
use windlass_merge::Shape as _;
use windlass_schema::Schema;

use super::sample::Source;

/// How deep a patch goes into its object.
const DEPTH_MAX: usize = 12;
/// How many members of a map and items of a list a patch looks at.
const MEMBERS_MAX: usize = 8;
/// What `$patch` may say, and some things that it may not.
const PATCHES: [&str; 6] = ["replace", "delete", "replace", "delete", "merge", "a"];

/// A patch that has something to do with `target`.
pub(super) fn patch(source: &mut Source<'_>, target: &Value, schema: &Schema) -> Value {
    let empty = Map::new();
    Value::Object(map(source, target.as_object().unwrap_or(&empty), Some(schema), DEPTH_MAX))
}

fn map(
    source: &mut Source<'_>,
    target: &Map<String, Value>,
    schema: Option<&Schema>,
    depth: usize,
) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, old) in target.iter().take(MEMBERS_MAX) {
        let member = schema.and_then(|schema| schema.member(name));
        let new = match source.byte() % 8 {
            0..3 => continue,
            3 => Value::Null,
            4 => member.map(|member| source.value(member)).unwrap_or_default(),
            _ => value(source, old, member, depth),
        };
        patch.insert(name.clone(), new);
    }
    if let (0..64, Some(Value::Object(fresh))) = (source.byte(), schema.map(|schema| source.value(schema))) {
        patch.extend(fresh);
    }
    for value in patch.values_mut().filter(|value| value.is_object()) {
        if let 0..6 = source.byte() {
            value["$patch"] = (*source.pick(&PATCHES)).into();
        }
    }
    directives(source, &mut patch, target);
    patch
}

fn value(source: &mut Source<'_>, old: &Value, schema: Option<&Schema>, depth: usize) -> Value {
    match old {
        _ if depth == 0 => old.clone(),
        Value::Object(old) => Value::Object(map(source, old, schema, depth - 1)),
        Value::Array(old) => Value::Array(list(source, old, schema, depth - 1)),
        _ => old.clone(),
    }
}

fn list(source: &mut Source<'_>, old: &[Value], schema: Option<&Schema>, depth: usize) -> Vec<Value> {
    let strategy = schema.map(|schema| schema.patch_strategy()).unwrap_or_default();
    let item_schema = schema.and_then(Schema::items);
    let mut items = Vec::new();
    for item in old.iter().take(MEMBERS_MAX) {
        let key = strategy.merge_key.and_then(|key| Some((key, item.get(key)?)));
        match (source.byte() % 8, key) {
            (0..2, _) => {}
            (2, Some((name, key))) => items.push(json!({name: key, "$patch": source.pick(&PATCHES)})),
            (3..6, Some((name, key))) => {
                let mut item = value(source, item, item_schema, depth);
                item[name] = key.clone();
                items.push(item);
            }
            _ => items.push(item.clone()),
        }
    }
    match source.byte() {
        0..16 => items.push(json!({"$patch": source.pick(&PATCHES)})),
        16..80 => items.extend(item_schema.map(|schema| source.value(schema))),
        80..112 => items.reverse(),
        _ => {}
    }
    items
}

/// Adds what is said of the map as a whole, and of lists beside it.
fn directives(source: &mut Source<'_>, patch: &mut Map<String, Value>, target: &Map<String, Value>) {
    let mut lists = Vec::new();
    for (name, old) in target.iter().chain(patch.iter()).take(MEMBERS_MAX) {
        let Value::Array(old) = old else { continue };
        let mut items: Vec<Value> = old.iter().take(MEMBERS_MAX).cloned().collect();
        if let Some(Value::Array(new)) = patch.get(name) {
            items.extend(new.iter().filter(|item| !old.contains(item) && item.get("$patch").is_none()).cloned());
        }
        items.retain(|_| source.byte() < 224);
        match source.byte() {
            0..24 => lists.push((format!("$setElementOrder/{name}"), items)),
            24..48 => lists.push((format!("$deleteFromPrimitiveList/{name}"), items)),
            _ => {}
        }
    }
    patch.extend(lists.into_iter().map(|(name, items)| (name, Value::Array(items))));
    match source.byte() {
        0..12 => drop(patch.insert("$patch".to_owned(), (*source.pick(&PATCHES)).into())),
        12..24 => {
            let names = target.keys().chain(patch.keys().filter(|name| !name.starts_with('$')));
            let names: Vec<Value> = names.filter(|_| source.byte() < 224).map(|name| name.as_str().into()).collect();
            patch.insert("$retainKeys".to_owned(), Value::Array(names));
        }
        _ => {}
    }
}
