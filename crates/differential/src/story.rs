//! A story: a run of random requests about one object, the same for both servers.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::call::Call;
use super::mutate::{any_path, mutate, other, part};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const MANAGERS: [&str; 3] = ["alpha", "beta", "gamma"];

/// A kind, with a valid object of it.
#[derive(Clone, Debug, serde::Deserialize)]
pub(super) struct Kind {
    /// Where its objects are.
    pub(super) path: String,
    pub(super) object: Value,
    pub(super) status: Option<Value>,
    #[serde(default)]
    scale: bool,
}

impl Kind {
    /// The last part of the path.
    pub(super) fn resource(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn named(&self, name: &str) -> Value {
        let mut object = self.object.clone();
        object["metadata"] = json!({ "name": name, "labels": {"app": "a"}, "annotations": {"note": "1"} });
        object
    }
}

/// The next request. `live` is the object as this server has it: what people send back is what they read.
pub(super) fn next(kind: &Kind, name: &str, step: usize, live: Option<&Value>, random: &mut StdRng) -> Call {
    let base = kind.named(name);
    let path = format!("{}/{name}", kind.path);
    match (step, random.random_range(0..100)) {
        (0, 0..84) | (_, 0..8) => create(kind, base, random),
        (_, 8..25) => update(path, live.unwrap_or(&base), random),
        (_, 25..35) => patch("merge-patch", "application/merge-patch+json", path, change(&base, random), random),
        (_, 35..48) => {
            let content = "application/strategic-merge-patch+json";
            patch("strategic-patch", content, path, directed(change(&base, random), random), random)
        }
        (_, 48..56) => {
            patch("json-patch", "application/json-patch+json", path, operations(live.unwrap_or(&base), random), random)
        }
        (_, 56..72) => apply(path, &base, random),
        (_, 72..80) => status(kind, path, live, random),
        (_, 80..84) if kind.scale => scale(path, random),
        (_, 84..88) => delete(path, random),
        (_, 88..92) => list(kind, random),
        _ => read(path, random),
    }
}

/// What ends a story: the object goes, whatever holds it.
pub(super) fn last(kind: &Kind, name: &str) -> [Call; 2] {
    let path = format!("{}/{name}", kind.path);
    let mut release = Call::new("release", "PATCH", path.clone(), Some(json!({"metadata": {"finalizers": null}})));
    release.content = "application/merge-patch+json";
    let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    [release, Call::new("delete", "DELETE", path, Some(now))]
}

fn create(kind: &Kind, mut object: Value, random: &mut StdRng) -> Call {
    if random.random_bool(0.6) {
        mutate(&mut object, random);
    }
    let query = options(random);
    Call::new("create", "POST", format!("{}?{query}", kind.path), Some(object))
}

fn update(path: String, live: &Value, random: &mut StdRng) -> Call {
    let mut object = live.clone();
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

fn patch(verb: &'static str, content: &'static str, path: String, body: Value, random: &mut StdRng) -> Call {
    let query = options(random);
    Call { content, ..Call::new(verb, "PATCH", format!("{path}?{query}"), Some(body)) }
}

fn apply(path: String, base: &Value, random: &mut StdRng) -> Call {
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
    let manager = MANAGERS.choose(random).unwrap_or(&"alpha");
    let content = "application/apply-patch+yaml";
    Call { content, ..Call::new("apply", "PATCH", format!("{path}?fieldManager={manager}{force}"), Some(object)) }
}

fn status(kind: &Kind, path: String, live: Option<&Value>, random: &mut StdRng) -> Call {
    let Some(sample) = &kind.status else { return read(path, random) };
    let mut sample = sample.clone();
    if random.random_bool(0.4) {
        mutate(&mut sample, random);
    }
    if let Some(live) = live
        && random.random_bool(0.5)
    {
        let mut object = live.clone();
        object["status"] = sample;
        return Call::new("update-status", "PUT", format!("{path}/status"), Some(object));
    }
    let body = json!({ "status": sample, "metadata": {"labels": {"from": "status"}} });
    let content = "application/merge-patch+json";
    Call { content, ..Call::new("patch-status", "PATCH", format!("{path}/status"), Some(body)) }
}

fn scale(path: String, random: &mut StdRng) -> Call {
    let path = format!("{path}/scale");
    if random.random_bool(0.3) {
        return Call::new("get-scale", "GET", path, None);
    }
    let mut body = json!({"spec": {"replicas": 3}});
    body["spec"]["replicas"] = other(&json!(3), random);
    Call { content: "application/merge-patch+json", ..Call::new("patch-scale", "PATCH", path, Some(body)) }
}

fn delete(path: String, random: &mut StdRng) -> Call {
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
        // Not in the query: where there is a body, Kubernetes does not look at it and deletes.
        body["dryRun"] = json!(["All"]);
    }
    Call::new("delete", "DELETE", path, Some(body))
}

fn list(kind: &Kind, random: &mut StdRng) -> Call {
    let queries = [
        "labelSelector=app%3Da",
        "labelSelector=app+in+(a,b),!gone",
        "labelSelector=app%3D%3D%3D",
        "limit=1&labelSelector=no",
        "fieldSelector=metadata.name%3Dnone",
        "fieldSelector=spec.nope%3D1",
        "resourceVersion=0&labelSelector=no",
        "resourceVersion=abc",
        "limit=-1",
        "resourceVersionMatch=Exact",
        "continue=garbage",
    ];
    let query = queries.choose(random).unwrap_or(&"");
    Call::new("list", "GET", format!("{}?{query}", kind.path), None)
}

fn read(path: String, random: &mut StdRng) -> Call {
    let accept = ["application/json", TABLE, METADATA].choose(random).copied().unwrap_or(TABLE);
    Call { accept, ..Call::new("get", "GET", path, None) }
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
        let (path, from) = (pointer(random), pointer(random));
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
