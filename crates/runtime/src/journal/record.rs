//! What the journal says of one run, as it is kept and as it is served.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many of the things that woke an object are named; the others are counted.
pub const TRIGGERS_MAX: usize = 4;
/// How many of the objects that a run looked at are named.
pub const SEEN_MAX: usize = 12;
/// How many of the calls of a run are named; the others are counted.
pub const CALLS_MAX: usize = 12;
/// How many of the fields that a call changed are named.
pub const FIELDS_MAX: usize = 8;

/// An object that has a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The API group, empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The cluster, where the operator works in several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// What became of an object that woke another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Happened {
    /// It was there when the watch began.
    Listed,
    /// It is new.
    Added,
    /// It is not what it was.
    Changed,
    /// It is gone.
    Deleted,
    /// A word of a newer version.
    #[serde(other)]
    Unknown,
}

/// Why an object came into line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Trigger {
    /// A watched object: itself, a child, or one that it refers to.
    Object {
        /// What became of it.
        happened: Happened,
        /// Its kind.
        kind: String,
        /// Its namespace, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Its name.
        name: String,
        /// Its resource version.
        #[serde(default)]
        version: String,
    },
    /// The run before failed.
    Retry,
    /// The run before asked to look again after a time.
    Recheck,
    /// Every object is looked at now and then.
    Resync,
    /// A source outside of the cluster.
    Source {
        /// Its name.
        name: String,
    },
    /// A request to an endpoint.
    Endpoint {
        /// Its path.
        path: String,
    },
    /// An interval that the operator set.
    Interval,
    /// The shard of the object came to this replica.
    Shard,
    /// The program put it into line by itself.
    Asked,
    /// A word of a newer version.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Object { happened, kind, name, .. } => {
                let happened = match happened {
                    Happened::Listed => "was found at the start",
                    Happened::Added => "is new",
                    Happened::Changed => "changed",
                    Happened::Deleted => "is gone",
                    Happened::Unknown => "had news",
                };
                return write!(f, "{kind} {name} {happened}");
            }
            Self::Source { name } => return write!(f, "the source {name}"),
            Self::Endpoint { path } => return write!(f, "a request to {path}"),
            Self::Retry => "a retry after a failure",
            Self::Recheck => "a second look that the run before asked for",
            Self::Resync => "the look at everything now and then",
            Self::Interval => "an interval of the operator",
            Self::Shard => "its shard came to this replica",
            Self::Asked => "the operator's own code",
            Self::Unknown => "something that a newer operator knows",
        };
        f.write_str(text)
    }
}

/// An object that a run looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The resource version that was seen; empty if it was not there.
    pub version: String,
    /// The generation that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Turn {
    /// It has not ended.
    #[default]
    Running,
    /// All is as declared.
    Settled,
    /// It waits for something.
    Waiting,
    /// A person has to change the object.
    Invalid,
    /// A person has to decide about something else.
    Refused,
    /// It failed and is tried again.
    Failed,
    /// Somebody else was faster; it is tried again at once.
    Conflict,
    /// It panicked, or was ended at its deadline.
    Crashed,
    /// The object is paused.
    Paused,
    /// What was done before does not last.
    HotLoop,
    /// The object is being deleted.
    Deleting,
    /// The object was gone.
    Gone,
    /// It ended without a word.
    Done,
    /// A word of a newer version.
    #[serde(other)]
    Unknown,
}

/// A call to the API that a run made: every write, and every read that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Made {
    /// `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural.
    pub resource: String,
    /// `status`, `scale`, … or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The namespace, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The HTTP status; `None` if there was no answer.
    pub code: Option<u16>,
    /// How long until the answer.
    pub took_ms: u64,
    /// The paths of the fields that changed, where the object is watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

/// What comes next without a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// When.
    pub at: Timestamp,
    /// Whether because of a failure.
    #[serde(default)]
    pub retry: bool,
}

/// One run: a look at an object and what followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The same as in the log and in traces.
    #[serde(rename = "reconcileID")]
    pub reconcile_id: String,
    /// Which controller.
    #[serde(default)]
    pub controller: String,
    /// When it began.
    pub started: Timestamp,
    /// How long it stood in line.
    #[serde(default)]
    pub waited_ms: u64,
    /// How long it took.
    #[serde(default)]
    pub took_ms: u64,
    /// What put the object into line.
    #[serde(default)]
    pub triggers: Vec<Trigger>,
    /// How many more there were.
    #[serde(default)]
    pub more_triggers: u32,
    /// What it looked at.
    #[serde(default)]
    pub saw: Vec<Seen>,
    /// How it ended.
    #[serde(default)]
    pub turn: Turn,
    /// A CamelCase word.
    #[serde(default)]
    pub reason: String,
    /// For people: what it waits for, or what failed.
    #[serde(default)]
    pub message: String,
    /// What it did.
    #[serde(default)]
    pub calls: Vec<Made>,
    /// How many more calls there were.
    #[serde(default)]
    pub more_calls: u32,
    /// How many reads were answered.
    #[serde(default)]
    pub reads: u32,
    /// How many runs in a row failed, this one included.
    #[serde(default)]
    pub failures: u32,
    /// When the object is looked at again, if nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// How many runs like this there were before it, one after the other, that did nothing.
    #[serde(default)]
    pub repeated: u32,
}

impl Run {
    /// A run that begins.
    pub(crate) fn new(reconcile_id: String, controller: String, started: Timestamp) -> Self {
        Self {
            reconcile_id,
            controller,
            started,
            waited_ms: 0,
            took_ms: 0,
            triggers: Vec::new(),
            more_triggers: 0,
            saw: Vec::new(),
            turn: Turn::Running,
            reason: String::new(),
            message: String::new(),
            calls: Vec::new(),
            more_calls: 0,
            reads: 0,
            failures: 0,
            next: None,
            repeated: 0,
        }
    }

    /// The same for runs that did nothing and came to the same end, so that one entry can stand for both; `None` for one that
    /// did something.
    pub(crate) fn likeness(&self) -> Option<u64> {
        let is_idle = self.calls.is_empty() && self.more_calls == 0;
        is_idle.then(|| {
            let mut hasher = DefaultHasher::new();
            (self.turn, &self.reason, &self.message).hash(&mut hasher);
            hasher.finish()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_newer_operator_can_be_read() {
        let text = r#"{"reconcileID": "a", "started": "2026-01-01T00:00:00Z", "turn": "levitated", "novelty": 1,
            "triggers": [{"type": "moon", "phase": "full"}, {"type": "object", "happened": "eaten", "kind": "Pod", "name": "p"}]}"#;
        let run: Run = serde_json::from_str(text).unwrap();
        assert_eq!(run.turn, Turn::Unknown);
        let words: Vec<_> = run.triggers.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["something that a newer operator knows", "Pod p had news"]);
    }
}
