//! A story: a run of random requests about one object, the same for both servers.

mod pods;
mod read;
mod theme;
mod write;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::call::Call;
use super::mutate::{mutate, other};

pub(super) use read::{METADATA, METADATA_LIST, TABLE};
pub(super) use theme::Theme;

const MANAGERS: [&str; 3] = ["alpha", "beta", "gamma"];

/// A kind, with a valid object of it. `{}` in a string of it stands for the name of the story.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of independent facts")]
pub(super) struct Kind {
    /// Where its objects are.
    pub(super) path: String,
    /// Where they are in another version or group.
    #[serde(default)]
    also: Vec<String>,
    /// How an object of the story is called.
    #[serde(default = "same_name")]
    name: String,
    object: Value,
    status: Option<Value>,
    /// Where the spec of its Pods is, as a JSON pointer.
    pods: Option<String>,
    #[serde(default)]
    scale: bool,
    #[serde(default)]
    parts: Vec<Part>,
    /// Fields in which the servers are allowed to differ; `ALLOWED` says why.
    #[serde(default)]
    pub(super) ignores: Vec<String>,
    /// Whether Kubernetes may count a write of `null` as a change, although it stores the same; `ALLOWED` says so.
    #[serde(default)]
    pub(super) repeats: bool,
    /// Whether Kubernetes forgets its first versions when etcd does: where it keeps no cache, or began to later.
    #[serde(default)]
    pub(super) forgets: bool,
    /// The condition that the server sets by itself, some time after the object is written.
    pub(super) awaits: Option<String>,
}

/// A subresource that takes objects of its own.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    method: Method,
    object: Value,
}

#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Get,
    Post,
    Put,
}

fn same_name() -> String {
    "{}".to_owned()
}

impl Kind {
    /// Whether its objects are Pods or have templates of them.
    pub(super) fn has_pods(&self) -> bool {
        self.pods.is_some()
    }

    /// The last part of the path.
    pub(super) fn resource(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// How the object of this story is called.
    pub(super) fn name(&self, story: &str) -> String {
        self.name.replace("{}", story)
    }

    /// The object of a story, with these labels.
    pub(super) fn object(&self, story: &str, labels: &Value) -> Value {
        let mut object = filled(&self.object, story);
        object["metadata"] = json!({ "name": self.name(story), "labels": labels, "annotations": {"note": "1"} });
        object
    }
}

/// The value with the name of the story in its place.
fn filled(value: &Value, story: &str) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), filled(value, story))).collect(),
        Value::Array(list) => list.iter().map(|value| filled(value, story)).collect(),
        Value::String(text) => text.replace("{}", story).into(),
        other => other.clone(),
    }
}

/// The next request of a story with this theme. `live` is the object as this server has it: what people send back is what they read.
pub(super) fn next(
    kind: &Kind,
    (story, theme, step): (&str, Theme, usize),
    live: Option<&Value>,
    random: &mut StdRng,
) -> Call {
    match theme {
        Theme::Any => any(kind, (story, step), live, random),
        Theme::Managers => theme::managers(kind, story, live, random),
        Theme::Ends => theme::ends(kind, story, live, random),
        Theme::Pods => match &kind.pods {
            Some(pointer) => pods::next(kind, (story, pointer), live, random),
            None => any(kind, (story, step), live, random),
        },
    }
}

fn any(kind: &Kind, (story, step): (&str, usize), live: Option<&Value>, random: &mut StdRng) -> Call {
    let base = kind.object(story, &json!({"app": "a"}));
    let path = format!("{}/{}", kind.path, kind.name(story));
    match (step, random.random_range(0..100)) {
        (0, 0..84) | (_, 0..8) => write::create(kind, base, random),
        (_, 8..25) => write::update(path, live.unwrap_or(&base), random),
        (_, 25..33) => write::merge_patch(path, &base, random),
        (_, 33..45) => write::strategic_patch(path, &base, random),
        (_, 45..53) => write::json_patch(path, live.unwrap_or(&base), random),
        (_, 53..69) => write::apply(path, &base, random),
        (_, 69..77) => status(kind, path, live, random),
        (_, 77..84) if kind.scale => scale(path, random),
        (_, 77..84) if !kind.parts.is_empty() => part(kind, &path, story, random),
        (_, 84..88) => write::delete(path, random),
        (_, 88..92) => read::list(kind, random),
        _ => read::get(kind, &path, random),
    }
}

/// What ends a story: the object goes, whatever holds it.
pub(super) fn last(kind: &Kind, story: &str) -> [Call; 2] {
    let path = format!("{}/{}", kind.path, kind.name(story));
    let mut release = Call::new("release", "PATCH", path.clone(), Some(json!({"metadata": {"finalizers": null}})));
    release.content = "application/merge-patch+json";
    let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
    [release, Call::new("delete", "DELETE", path, Some(now))]
}

fn status(kind: &Kind, path: String, live: Option<&Value>, random: &mut StdRng) -> Call {
    let Some(sample) = &kind.status else { return read::get(kind, &path, random) };
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

fn part(kind: &Kind, path: &str, story: &str, random: &mut StdRng) -> Call {
    let Some(part) = kind.parts.choose(random) else { return read::get(kind, path, random) };
    let path = format!("{path}/{}", part.name);
    let mut object = filled(&part.object, story);
    if random.random_bool(0.5) {
        mutate(&mut object, random);
    }
    match part.method {
        Method::Get => Call::new("get-part", "GET", path, None),
        Method::Post => Call::new("create-part", "POST", path, Some(object)),
        Method::Put => Call::new("update-part", "PUT", path, Some(object)),
    }
}
