//! The script that every implementation is run through: what a user does, and what should follow.

mod change;
mod drift;
mod forbidden;
mod life;

use std::fmt;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stage::Stage;

/// Something that a user may expect of the operator.
pub(super) struct Behaviour {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// Whether the others build on it.
    pub(super) is_base: bool,
    /// Whether an implementation may say in words why it is not there.
    pub(super) is_optional: bool,
    run: fn(&mut Stage) -> Result<()>,
}

impl Behaviour {
    const fn new(name: &'static str, title: &'static str, run: fn(&mut Stage) -> Result<()>) -> Self {
        Self { name, title, is_base: false, is_optional: false, run }
    }

    const fn base(mut self) -> Self {
        self.is_base = true;
        self
    }

    const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Plays this part of the script.
    pub(super) fn perform(&self, stage: &mut Stage) -> Verdict {
        match (self.run)(stage) {
            Ok(()) => Verdict::Held,
            Err(why) => Verdict::Failed(format!("{why:#}")),
        }
    }
}

/// The script in its order: each part leaves the resource `cache` ready.
pub(super) const BEHAVIOURS: [Behaviour; 21] = [
    Behaviour::new("create", "a Deployment and a headless Service are made, and owned", life::create).base(),
    Behaviour::new("ready", "`Ready` becomes true, for the present generation", life::ready).base(),
    Behaviour::new("status", "status names the Pods, counts them and has their selector", life::status),
    Behaviour::new("events", "an event on the resource tells what was made", life::events).optional(),
    Behaviour::new("refused", "a size of 0 or 17 and an image with a space are refused", change::refused),
    Behaviour::new("scale", "`kubectl scale` of the resource is followed", change::scale),
    Behaviour::new("image", "a new image is rolled out", change::image),
    Behaviour::new("drift-replicas", "replicas changed by hand are put right", drift::replicas),
    Behaviour::new("drift-told", "… and an event on the resource tells of it", drift::told),
    Behaviour::new("drift-image", "an image changed by hand is put right", drift::image),
    Behaviour::new("drift-label", "a label changed by hand is put right", drift::label),
    Behaviour::new("drift-service", "a Service's selector changed by hand is put right", drift::service),
    Behaviour::new("recreate", "a Deployment and a Service deleted by hand come back", drift::recreate),
    Behaviour::new("bad-neighbour", "objects that cannot be served do not hold up the others", change::bad_neighbour),
    Behaviour::new("restart", "what changed while the operator was down is put right", life::restart),
    Behaviour::new("pause", "one resource can be left alone for a while", change::pause).optional(),
    Behaviour::new("delete", "deletion leaves nothing behind", life::delete),
    Behaviour::new("forbidden-serves", "Services forbidden: Deployments are kept all the same", forbidden::serves),
    Behaviour::new(
        "forbidden-prompt",
        "… and a change after half a minute of quiet is followed within 10 s",
        forbidden::prompt,
    ),
    Behaviour::new("forbidden-told", "… and the resource, or an event on it, says what is wrong", forbidden::told),
    Behaviour::new("forbidden-recovers", "… and once allowed, all goes on without a restart", forbidden::recovers),
];

/// How a part of the script went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// As it should.
    Held,
    /// Otherwise; this is what was seen.
    Failed(String),
    /// The toolkit does not do it by itself; these are the words for it.
    Absent(String),
    /// It was not asked for.
    Skipped,
}

impl Verdict {
    pub(super) fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Held => "yes",
            Self::Failed(_) => "no",
            Self::Absent(_) => "absent",
            Self::Skipped => "skipped",
        })
    }
}

/// The image that is run where none is said.
const DEFAULT_IMAGE: &str = "memcached:1.6";

/// A resource of this name.
fn memcached(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec})
}

/// The labels that the operator gives to what it makes for `name`.
fn labels(name: &str) -> Value {
    json!({"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": name})
}

/// Whether an object has these labels; it may have others, too.
fn is_labelled(object: &Value, name: &str) -> bool {
    labels(name).as_object().into_iter().flatten().all(|(key, value)| object["metadata"]["labels"][key] == *value)
}

/// The same as a selector.
fn selector(name: &str) -> String {
    format!("app.kubernetes.io/name=memcached,app.kubernetes.io/instance={name}")
}

/// The image of a Deployment's first container.
fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// Whether the condition Ready is true of the resource as it is now.
fn is_ready(memcached: &Value) -> bool {
    let conditions = memcached["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["observedGeneration"] == memcached["metadata"]["generation"]
    })
}

/// Waits until `name` is ready with so many Pods.
fn until_ready(stage: &Stage, name: &str, size: u32) -> Result<()> {
    let is_so = |it: &Value| is_ready(it) && it["status"]["replicas"] == size && it["spec"]["size"] == size;
    stage.kubectl.until(&format!("memcached/{name}"), &format!("is to be ready with {size}"), is_so).map(drop)
}
