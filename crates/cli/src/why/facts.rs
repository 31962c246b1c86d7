//! What is known of an object: itself, what is above and below it, what happened, and what its operator says.

use jiff::Timestamp;
use serde_json::Value;
use windlass::runtime::journal::{History, Replica};

/// All that was found out.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The object, and what is below it.
    pub(crate) tree: Node,
    /// What is above it, the nearest first.
    pub(crate) owners: Vec<Value>,
    /// Events of all these, oldest first.
    pub(crate) events: Vec<Value>,
    /// The names of the storage classes, if they could be read and a claim makes them matter.
    pub(crate) classes: Option<Vec<String>>,
    /// What operators say.
    pub(crate) operators: Operators,
    /// What could not be looked at, and why.
    pub(crate) gaps: Vec<String>,
    /// When it was looked at.
    pub(crate) now: Timestamp,
}

/// An object and what belongs to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) object: Value,
    pub(crate) children: Vec<Self>,
}

/// What operators say of an object.
#[derive(Debug, Default)]
pub(crate) struct Operators {
    /// The Pods of operators that may serve it.
    pub(crate) pods: Vec<Value>,
    /// Those that answered.
    pub(crate) replicas: Vec<(String, Replica)>,
    /// The history that was found: in which replica, and of which object.
    pub(crate) history: Option<(String, History)>,
    /// Why nobody was asked, or nobody answered.
    pub(crate) silence: Option<String>,
}

impl Facts {
    /// The object that is asked about.
    pub(crate) fn object(&self) -> &Value {
        &self.tree.object
    }

    /// The events of one object, newest first.
    pub(crate) fn events_of<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = &'a Value> {
        let uid = &object["metadata"]["uid"];
        self.events.iter().rev().filter(move |event| event["involvedObject"]["uid"] == *uid)
    }

    /// The newest event of one object with one of these reasons.
    pub(crate) fn event<'a>(&'a self, object: &'a Value, reasons: &[&str]) -> Option<&'a Value> {
        self.events_of(object).find(|event| event["reason"].as_str().is_some_and(|reason| reasons.contains(&reason)))
    }

    /// The replicas that serve the kind of an object.
    pub(crate) fn serving<'a>(&'a self, object: &'a Value) -> impl Iterator<Item = &'a (String, Replica)> {
        let (group, kind) = (group(object), text(&object["kind"]));
        let serves = move |replica: &Replica| replica.serves.iter().any(|it| it.group == group && it.kind == kind);
        self.operators.replicas.iter().filter(move |(_, replica)| serves(replica))
    }
}

impl Node {
    /// This and all below it, from above.
    pub(crate) fn all(&self) -> Vec<&Value> {
        let below = self.children.iter().flat_map(Self::all);
        std::iter::once(&self.object).chain(below).collect()
    }
}

/// A text of an object, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The API group of an object.
pub(crate) fn group(object: &Value) -> &str {
    text(&object["apiVersion"]).split_once('/').map_or("", |(group, _)| group)
}

/// `Pod cache-1`.
pub(crate) fn title(object: &Value) -> String {
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// A condition of an object.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == type_)
}

/// A condition that is true.
pub(crate) fn holds<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    condition(object, type_).filter(|one| one["status"] == "True")
}

/// The message of a condition or an event, or its reason.
pub(crate) fn message(value: &Value) -> String {
    let message = text(&value["message"]).trim();
    if message.is_empty() { text(&value["reason"]).to_owned() } else { message.to_owned() }
}
