//! Conditions: what holds for a resource, since when, and as of which generation.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{Schema, SchemaGenerator, json_schema};

/// CamelCase, with a domain before it if need be.
const TYPE_PATTERN: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                            (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// CamelCase.
const REASON_PATTERN: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// A longer message is cut.
const MESSAGE_CHARS_MAX: usize = 8192;

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

impl Truth {
    /// The word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A statement about a condition, without times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The condition's type.
    pub type_: String,
    /// Whether it holds.
    pub truth: Truth,
    /// A CamelCase word.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Statement {
    /// A statement from its parts.
    pub fn new(type_: &str, truth: impl Into<Truth>, reason: &str, message: impl Into<String>) -> Self {
        Self { type_: type_.into(), truth: truth.into(), reason: reason.into(), message: message.into() }
    }
}

/// Enters `statement` into `conditions`. The time of transition moves only when the truth changes.
pub fn set(conditions: &mut Vec<Condition>, statement: Statement, generation: Option<i64>, now: Timestamp) {
    let known = conditions.iter_mut().find(|condition| condition.type_ == statement.type_);
    let changed = known.as_ref().is_none_or(|known| known.status != statement.truth.as_str());
    let since = match &known {
        Some(known) if !changed => known.last_transition_time.clone(),
        // The API keeps whole seconds; more would make the stored condition differ from this one.
        _ => Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    };
    let condition = Condition {
        type_: statement.type_,
        status: statement.truth.as_str().into(),
        reason: statement.reason,
        message: statement.message.chars().take(MESSAGE_CHARS_MAX).collect(),
        observed_generation: generation,
        last_transition_time: since,
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type is `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// The schema of a list of conditions, with the limits that the API's own conditions have.
pub(crate) fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "What holds for the resource, since when.",
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "pattern": TYPE_PATTERN},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": REASON_PATTERN},
                "message": {"type": "string", "maxLength": 32768},
            },
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_transition_moves_only_with_the_truth() {
        let mut conditions = Vec::new();
        let rows = [
            (10, true, "Settled", 10),
            (20, true, "Settled", 10),
            (30, true, "Other", 10),
            (40, false, "Waiting", 40),
            (50, false, "Waiting", 40),
        ];
        for (now, truth, reason, since) in rows {
            let now = Timestamp::from_second(now).unwrap();
            set(&mut conditions, Statement::new("Ready", truth, reason, ""), Some(3), now);
            let [condition] = conditions.as_slice() else { panic!("{conditions:?}") };
            assert_eq!(condition.last_transition_time.0.as_second(), since, "{truth} {reason}");
            assert_eq!((condition.reason.as_str(), condition.observed_generation), (reason, Some(3)));
        }
    }
}
