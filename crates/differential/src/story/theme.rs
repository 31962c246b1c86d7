//! What a story is mostly about.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::mutate::{mutate, part};
use super::{Kind, MANAGERS, read, write};

/// What holds an object in stories about its end.
const HOLD: &str = "example.com/hold";

/// What a story is mostly about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    /// Everything.
    Any,
    /// Managers who apply, share and contest fields, and give them up.
    Managers,
    /// How an object ends.
    Ends,
    /// The Pods of an object, or those that it makes.
    Pods,
}

impl Theme {
    /// The theme of a story; neighbours are about different kinds, so that every kind gets every theme.
    pub(crate) fn of(seed: u64) -> Self {
        match (seed / 3) % 8 {
            2 => Self::Managers,
            5 => Self::Ends,
            7 => Self::Pods,
            _ => Self::Any,
        }
    }
}

/// The next request of a story about managers.
pub(super) fn managers(kind: &Kind, story: &str, live: Option<&Value>, random: &mut StdRng) -> Call {
    let path = format!("{}/{}", kind.path, kind.name(story));
    let base = kind.object(story, &json!({"app": "a"}));
    match random.random_range(0..100) {
        0..65 => apply(kind, path, &base, random),
        65..75 => write::update(path, live.unwrap_or(&base), random),
        75..85 => write::merge_patch(path, &base, random),
        85..90 => write::json_patch(path, live.unwrap_or(&base), random),
        _ => read::get(kind, &path, random),
    }
}

/// Some of the object, with a few values that are this manager's own.
fn apply(kind: &Kind, path: String, base: &Value, random: &mut StdRng) -> Call {
    let manager = MANAGERS.choose(random).copied().unwrap_or("alpha");
    let mut object = part(base, random);
    for field in ["apiVersion", "kind"] {
        object[field] = base[field].clone();
    }
    let value = ["1", manager].choose(random).copied().unwrap_or("1");
    let mut labels = json!({"app": "a"});
    if random.random_bool(0.5) {
        labels[manager] = "own".into();
    }
    if random.random_bool(0.5) {
        labels["shared"] = value.into();
    }
    object["metadata"] = json!({ "name": base["metadata"]["name"], "labels": labels });
    if random.random_bool(0.3) {
        object["metadata"]["annotations"] = json!({ "note": value });
    }
    if random.random_bool(0.2) {
        object["metadata"]["finalizers"] = json!([HOLD]);
    }
    if random.random_bool(0.25) {
        mutate(&mut object, random);
    }
    let (mut suffix, mut body) = ("", object);
    if let Some(status) = kind.status.as_ref().filter(|_| random.random_bool(0.15)) {
        suffix = "/status";
        body = json!({ "apiVersion": base["apiVersion"], "kind": base["kind"], "status": part(status, random),
            "metadata": {"name": base["metadata"]["name"]} });
    }
    let force = if random.random_bool(0.4) { "&force=true" } else { "" };
    let path = format!("{path}{suffix}?fieldManager={manager}{force}");
    Call { content: "application/apply-patch+yaml", ..Call::new("apply", "PATCH", path, Some(body)) }
}

/// The next request of a story about the end of an object.
pub(super) fn ends(kind: &Kind, story: &str, live: Option<&Value>, random: &mut StdRng) -> Call {
    let path = format!("{}/{}", kind.path, kind.name(story));
    let mut base = kind.object(story, &json!({"app": "a"}));
    match (live, random.random_range(0..100)) {
        (None, 0..80) | (_, 0..10) => {
            if random.random_bool(0.6) {
                base["metadata"]["finalizers"] = json!([[HOLD], ["orphan"], ["foregroundDeletion"]].choose(random));
            }
            Call::new("create", "POST", kind.path.clone(), Some(base))
        }
        (_, 10..60) => delete(path, live, random),
        (_, 60..80) => {
            let sets = [json!([]), json!(null), json!([HOLD]), json!([HOLD, "example.com/other"]), json!(["orphan"])];
            let change = json!({"metadata": {"finalizers": sets.choose(random)}});
            let content = "application/merge-patch+json";
            Call { content, ..Call::new("finalizers", "PATCH", path, Some(change)) }
        }
        (_, 80..90) => write::update(path, live.unwrap_or(&base), random),
        _ => read::get(kind, &path, random),
    }
}

/// A delete with options in its body, in its query, or without any.
fn delete(path: String, live: Option<&Value>, random: &mut StdRng) -> Call {
    let mut options = json!({});
    if random.random_bool(0.4) {
        options["propagationPolicy"] = json!(["Foreground", "Background", "Orphan", "Sideways"].choose(random));
    }
    if random.random_bool(0.15) {
        options["orphanDependents"] = json!(random.random_bool(0.5));
    }
    if random.random_bool(0.3) {
        options["gracePeriodSeconds"] = json!([0, 1, 30, -1].choose(random));
    }
    if random.random_bool(0.15) {
        options["dryRun"] = json!("All");
    }
    if random.random_bool(0.4) {
        let query = options.as_object().into_iter().flatten().map(|(name, value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{name}={value}")
        });
        let query: Vec<String> = query.collect();
        return Call::new("delete", "DELETE", format!("{path}?{}", query.join("&")), None);
    }
    if options.get("dryRun").is_some() {
        options["dryRun"] = json!(["All"]);
    }
    if let Some(metadata) = live.map(|live| &live["metadata"])
        && random.random_bool(0.3)
    {
        let right = random.random_bool(0.6);
        let name = ["uid", "resourceVersion"].choose(random).copied().unwrap_or("uid");
        options["preconditions"] = json!({ name: if right { metadata[name].clone() } else { json!("1") } });
    }
    Call::new("delete", "DELETE", path, Some(options))
}
