//! Stories about the Pods of a kind: put together of many parts, and broken.

use std::sync::LazyLock;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::mutate::break_inside;
use super::{Kind, read};

/// How many parts a Pod is made of, at most.
const PARTS_MAX: usize = 4;

/// What goes into a Pod.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    spec: Value,
    container: Value,
    init: Value,
}

static PARTS: LazyLock<Vec<Part>> =
    LazyLock::new(|| serde_saphyr::from_str(include_str!("../pods.yaml")).expect("pods.yaml is a list of parts"));

/// The next request of a story about Pods, whose spec is at `pointer`. Most are dry runs, so that every Pod begins anew.
pub(super) fn next(kind: &Kind, (story, pointer): (&str, &str), live: Option<&Value>, random: &mut StdRng) -> Call {
    let path = format!("{}/{}", kind.path, kind.name(story));
    let base = kind.object(story, &json!({"app": "a"}));
    let (verb, method, target, mut object) = match (live, random.random_range(0..10)) {
        (Some(live), 0..3) => ("update", "PUT", path, live.clone()),
        (None, 0..2) => ("create", "POST", kind.path.clone(), base),
        (_, 9) => return read::get(kind, &path, random),
        _ => ("create", "POST", format!("{}?dryRun=All", kind.path), base),
    };
    if let Some(spec) = object.pointer_mut(pointer) {
        for _ in 0..random.random_range(1..=PARTS_MAX) {
            if let Some(part) = PARTS.choose(random) {
                add(spec, part);
            }
        }
        for _ in 0..random.random_range(0..3) {
            break_inside(spec, random);
        }
    }
    Call::new(verb, method, target, Some(object))
}

fn add(spec: &mut Value, part: &Part) {
    merge(spec, &part.spec);
    if let Some(first) = spec.pointer_mut("/containers/0") {
        merge(first, &part.container);
    }
    if part.init.is_object() {
        merge(spec, &json!({ "initContainers": [part.init] }));
    }
}

/// Lists grow, maps are merged, and the rest is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (_, Value::Null) => {}
        (Value::Array(into), Value::Array(from)) => into.extend(from.iter().cloned()),
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_together() {
        assert!(PARTS.len() > 20);
        let mut spec = json!({"containers": [{"name": "one", "env": [{"name": "A"}]}]});
        let part = |container: Value| Part { container, ..Part::default() };
        add(&mut spec, &part(json!({"env": [{"name": "B"}], "image": "a"})));
        assert_eq!(spec, json!({"containers": [{"name": "one", "image": "a", "env": [{"name": "A"}, {"name": "B"}]}]}));
    }
}
