//! Reading an object for display: absent things have a text too.

use jiff::Timestamp;
use serde_json::Value;

use super::age;

/// What stands where there is nothing.
pub(super) const NONE: &str = "<none>";
/// What stands where nothing was set.
pub(super) const UNSET: &str = "<unset>";

/// An object and the time at which it is looked at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> View<'a> {
    /// The value at a dotted path; null where there is none.
    pub(super) fn at(&self, path: &str) -> &'a Value {
        at(self.object, path)
    }

    /// The text at a dotted path; empty where there is none.
    pub(super) fn text(&self, path: &str) -> &'a str {
        text(self.object, path)
    }

    /// The text at a dotted path, or `otherwise` where there is none.
    pub(super) fn text_or(&self, path: &str, otherwise: &'a str) -> &'a str {
        Some(self.text(path)).filter(|text| !text.is_empty()).unwrap_or(otherwise)
    }

    /// The number at a dotted path; 0 where there is none.
    pub(super) fn integer(&self, path: &str) -> i64 {
        integer(self.object, path)
    }

    /// The truth at a dotted path; false where there is none.
    pub(super) fn truth(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or(false)
    }

    /// The list at a dotted path; empty where there is none.
    pub(super) fn list(&self, path: &str) -> &'a [Value] {
        list(self.object, path)
    }

    /// The number of members of the list or map at a dotted path.
    pub(super) fn count(&self, path: &str) -> i64 {
        let count = match self.at(path) {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    pub(super) fn name(&self) -> &'a str {
        self.text("metadata.name")
    }

    /// How long ago the object was made.
    pub(super) fn age(&self) -> String {
        self.since("metadata.creationTimestamp")
    }

    /// How long ago the time at a dotted path was.
    pub(super) fn since(&self, path: &str) -> String {
        age::since(Some(self.text(path)).filter(|text| !text.is_empty()), self.now)
    }

    /// Whether deletion has begun.
    pub(super) fn deleting(&self) -> bool {
        !self.at("metadata.deletionTimestamp").is_null()
    }

    /// The condition of a type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        self.list("status.conditions").iter().find(|condition| text(condition, "type") == kind)
    }

    /// Whether the condition of a type is true.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| text(condition, "status") == "True")
    }
}

/// The value at a dotted path; null where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |value, name| value.get(name)).unwrap_or(&Value::Null)
}

/// The text at a dotted path; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The number at a dotted path; 0 where there is none.
pub(super) fn integer(value: &Value, path: &str) -> i64 {
    at(value, path).as_i64().unwrap_or(0)
}

/// The list at a dotted path; empty where there is none.
pub(super) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A scalar as it stands in a cell: numbers and quantities alike.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Labels as `a=b,c=d`.
pub(super) fn labels(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", scalar(value)));
    or_none(sorted(pairs).join(","))
}

/// A label selector as `a=b,c in (d,e),!f`; empty for one that selects all.
pub(super) fn selector(value: &Value) -> String {
    let pairs = at(value, "matchLabels").as_object().into_iter().flatten();
    let equal = pairs.map(|(key, value)| format!("{key}={}", scalar(value)));
    let expressions = list(value, "matchExpressions").iter().map(|expression| {
        let key = text(expression, "key");
        let values = sorted(list(expression, "values").iter().map(scalar)).join(",");
        match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    sorted(equal.chain(expressions)).join(",")
}

/// The text, or `<none>` for an empty one.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { NONE.to_owned() } else { text }
}

/// Names and images of containers, each joined by commas.
pub(super) fn containers(containers: &[Value]) -> [Value; 2] {
    let joined =
        |member: &str| containers.iter().map(|container| text(container, member)).collect::<Vec<_>>().join(",");
    [joined("name").into(), joined("image").into()]
}

/// The first `most` texts, and how many more there are.
pub(super) fn some_of(texts: &[String], most: usize) -> String {
    let shown = texts[..texts.len().min(most)].join(",");
    if texts.len() > most { format!("{shown} + {} more...", texts.len() - most) } else { shown }
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}
