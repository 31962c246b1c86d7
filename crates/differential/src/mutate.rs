//! Random changes of JSON: some leave an object valid, most do not.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

/// How deep a change may go; deeper than any kind.
const DEPTH_MAX: usize = 12;

/// Words that mean something somewhere in a Pod.
const POD_WORDS: [&str; 32] = [
    "",
    " a",
    "..",
    "../up",
    "..up",
    "/absolute",
    "a/../b",
    "a/b",
    "a_b",
    "A=B",
    "a.b",
    "a-",
    "1",
    "-1",
    "1500m",
    "2Gi",
    "None",
    "Always",
    "OnFailure",
    "Never",
    "Localhost",
    "Unconfined",
    "Bidirectional",
    "Enabled",
    "Exists",
    "In",
    "Gt",
    "metadata.name",
    "status.phase",
    "limits.memory",
    "10.0.0.256",
    "one",
];

/// A path into a document: names and positions, as in a JSON pointer.
pub(super) type Path = Vec<String>;

/// Makes one random change somewhere in the document.
pub(super) fn mutate(document: &mut Value, random: &mut StdRng) {
    let path = any_path(document, random);
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(&mut *document, |value, step| enter(value, step));
    match parent {
        Some(Value::Object(map)) => change_field(map, last, random),
        Some(Value::Array(list)) => change_item(list, last.parse().unwrap_or(0), random),
        _ => {}
    }
}

/// Makes one random change at any place of the document, deep ones as often as others.
pub(super) fn break_inside(document: &mut Value, random: &mut StdRng) {
    let mut paths = Vec::new();
    collect(document, &mut Path::new(), &mut paths);
    let Some((last, parents)) = paths.choose(random).and_then(|path| path.split_last()) else { return };
    let parent = parents.iter().try_fold(&mut *document, |value, step| enter(value, step));
    let words = |random: &mut StdRng| json!(POD_WORDS.choose(random));
    match parent {
        Some(Value::Object(map)) if random.random_bool(0.3) => drop(map.insert(last.clone(), words(random))),
        Some(Value::Object(map)) => change_field(map, last, random),
        Some(Value::Array(list)) => change_item(list, last.parse().unwrap_or(0), random),
        _ => {}
    }
}

/// All places of the document but its root.
fn collect(value: &Value, path: &mut Path, paths: &mut Vec<Path>) {
    let names: Vec<String> = match value {
        Value::Object(map) => map.keys().cloned().collect(),
        Value::Array(list) => (0..list.len()).map(|index| index.to_string()).collect(),
        _ => return,
    };
    for name in names {
        let inner = step(value, &name).unwrap_or(&Value::Null);
        path.push(name);
        paths.push(path.clone());
        collect(inner, path, paths);
        path.pop();
    }
}

fn change_field(map: &mut Map<String, Value>, name: &str, random: &mut StdRng) {
    match random.random_range(0..8) {
        0 | 1 => drop(map.remove(name)),
        2 => drop(map.insert("unknownField".to_owned(), json!("x"))),
        3 => drop(map.insert(name.to_owned(), Value::Null)),
        _ => {
            let new = other(map.get(name).unwrap_or(&Value::Null), random);
            map.insert(name.to_owned(), new);
        }
    }
}

fn change_item(list: &mut Vec<Value>, position: usize, random: &mut StdRng) {
    let Some(item) = list.get(position).cloned() else { return };
    match random.random_range(0..4) {
        0 => drop(list.remove(position)),
        1 => list.push(item),
        2 => list.swap(0, position),
        _ => list[position] = other(&item, random),
    }
}

/// Another value than this one, more often than not of the same type.
pub(super) fn other(value: &Value, random: &mut StdRng) -> Value {
    let strings = ["", "x", "other-name", "Not Valid!", "100m", "2Gi", "50%", "-1", "a.b/c", "80", "TCP", "Always"];
    let numbers = [-1, 0, 1, 2, 3, 7, 80, 65_535, 65_536, 4_294_967_296_i64];
    let string = || json!(strings[0]);
    match (value, random.random_range(0..10)) {
        (_, 0) => json!(random.random_bool(0.5)),
        (_, 1) => json!([]),
        (_, 2) => json!({}),
        (Value::String(_), 3) => json!(7),
        (Value::String(_) | Value::Null, _) => strings.choose(random).map_or_else(string, |text| json!(text)),
        (Value::Number(_), 3) => json!("7"),
        (Value::Number(_), 4) => json!(1.5),
        (Value::Number(_), _) => json!(numbers.choose(random).copied().unwrap_or(0)),
        (Value::Bool(flag), _) => json!(!flag),
        (Value::Array(list), 3..6) => Value::Array(list.iter().rev().cloned().collect()),
        (Value::Array(_) | Value::Object(_), _) => {
            let mut changed = value.clone();
            mutate(&mut changed, random);
            changed
        }
    }
}

/// Any place in the document but its root; `apiVersion`, `kind` and what servers give are left alone most of the time.
pub(super) fn any_path(document: &Value, random: &mut StdRng) -> Path {
    let mut path = Path::new();
    let mut value = document;
    while path.len() < DEPTH_MAX {
        let names: Vec<String> = match value {
            Value::Object(map) => map.keys().filter(|name| open(&path, name, random)).cloned().collect(),
            Value::Array(list) => (0..list.len()).map(|index| index.to_string()).collect(),
            _ => break,
        };
        let Some(name) = names.choose(random) else { break };
        path.push(name.clone());
        value = step(value, name).unwrap_or(&Value::Null);
        if random.random_range(0..4) == 0 {
            break;
        }
    }
    path
}

fn open(path: &Path, name: &str, random: &mut StdRng) -> bool {
    let given = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "name", "namespace"];
    let rare = (path.is_empty() && (name == "apiVersion" || name == "kind"))
        || (path.len() == 1 && path[0] == "metadata" && given.contains(&name));
    !rare || random.random_range(0..40) == 0
}

fn step<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => map.get(name),
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn enter<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(map) => map.get_mut(name),
        Value::Array(list) => list.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    }
}

/// The document with only some of its fields.
pub(super) fn part(document: &Value, random: &mut StdRng) -> Value {
    match document {
        Value::Object(map) => {
            let kept = map.iter().filter(|_| random.random_range(0..4) != 0).map(|(name, value)| (name, value.clone()));
            let kept: Vec<(String, Value)> = kept.map(|(name, value)| (name.clone(), value)).collect();
            kept.into_iter().map(|(name, value)| (name, part(&value, random))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
