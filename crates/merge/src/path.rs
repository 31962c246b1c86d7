//! Places in an object: path elements, paths, and how both are written.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::order;

/// One step from a value to a value inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathElement {
    /// The member of a map.
    Field(String),
    /// The item of an associative list with these members, sorted by name.
    Key(Vec<(String, KeyValue)>),
    /// The item of a set with this value.
    Value(KeyValue),
    /// The item of a list at this position.
    Index(usize),
}

/// A JSON value that identifies an item; `1` and `1.0` identify the same one.
#[derive(Clone, Debug)]
pub struct KeyValue(pub Value);

/// The way from an object to a value inside it.
pub type Path = [PathElement];

/// Why a text is not a path element of the FieldsV1 format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathElementError {
    /// The text does not begin with one letter and a colon.
    #[error("path element {0:?} must begin with \"f:\", \"k:\", \"v:\" or \"i:\"")]
    Prefix(String),
    /// What follows the prefix cannot be read.
    #[error("path element {element:?}: {reason}")]
    Content {
        /// The element as it was given.
        element: String,
        /// What was expected.
        reason: String,
    },
}

impl PathElement {
    /// The element of the member `name`.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// The element of the list item with these members.
    pub fn key<N: Into<String>>(members: impl IntoIterator<Item = (N, Value)>) -> Self {
        let mut members: Vec<_> = members.into_iter().map(|(name, value)| (name.into(), KeyValue(value))).collect();
        members.sort();
        Self::Key(members)
    }

    /// The element of the set item `value`.
    pub fn value(value: Value) -> Self {
        Self::Value(KeyValue(value))
    }

    /// Writes the element as a key of the FieldsV1 format: `f:spec`, `k:{"name":"web"}`, `v:"a"`, `i:0`.
    pub fn to_wire(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(members) => {
                let members = members.iter().map(|(name, value)| [&quoted(name), ":", &text_of(&value.0)].concat());
                ["k:{", &members.collect::<Vec<_>>().join(","), "}"].concat()
            }
            Self::Value(value) => ["v:", &text_of(&value.0)].concat(),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of the FieldsV1 format; `None` for a kind of element that is not known, which readers skip.
    ///
    /// # Errors
    /// The text has no prefix, or what follows it cannot be read.
    pub fn from_wire(text: &str) -> Result<Option<Self>, PathElementError> {
        let prefix = || PathElementError::Prefix(text.to_owned());
        let content = |reason: String| PathElementError::Content { element: text.to_owned(), reason };
        let (kind, rest) = text.split_at_checked(2).ok_or_else(prefix)?;
        let json = || serde_json::from_str::<Value>(rest).map_err(|error| content(error.to_string()));
        match kind {
            "f:" => Ok(Some(Self::field(rest))),
            "v:" => Ok(Some(Self::value(json()?))),
            "k:" => match json()? {
                Value::Object(members) => Ok(Some(Self::key(members))),
                _ => Err(content("a key must be a JSON object".to_owned())),
            },
            "i:" => match rest.parse() {
                Ok(index) => Ok(Some(Self::Index(index))),
                Err(_) => Err(content("an index must be a number".to_owned())),
            },
            _ if kind.ends_with(':') => Ok(None),
            _ => Err(prefix()),
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(formatter, ".{name}"),
            Self::Key(members) => {
                let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}={}", value.0)).collect();
                write!(formatter, "[{}]", members.join(","))
            }
            Self::Value(value) => write!(formatter, "[={}]", value.0),
            Self::Index(index) => write!(formatter, "[{index}]"),
        }
    }
}

/// Writes a path as people read it: `.spec.containers[name="web"].image`.
///
/// ```
/// use windlass_merge::{PathElement, path_text};
///
/// let path = [PathElement::field("spec"), PathElement::key([("name", "web".into())]), PathElement::field("image")];
/// assert_eq!(path_text(&path), r#".spec[name="web"].image"#);
/// ```
pub fn path_text(path: &Path) -> String {
    path.iter().map(ToString::to_string).collect()
}

impl PartialEq for KeyValue {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyValue {}

impl PartialOrd for KeyValue {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyValue {
    fn cmp(&self, other: &Self) -> Ordering {
        order::compare(&self.0, &other.0)
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text as JSON. Most have nothing to escape, and to find that out is cheaper than a serializer.
fn quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        ["\"", text, "\""].concat()
    } else {
        Value::from(text).to_string()
    }
}

impl From<Map<String, Value>> for PathElement {
    fn from(members: Map<String, Value>) -> Self {
        Self::key(members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(wire: &str, text: &str) {
        let element = PathElement::from_wire(wire).expect("the element can be read").expect("the kind is known");
        assert_eq!(element.to_string(), text);
        assert_eq!(PathElement::from_wire(&element.to_wire()), Ok(Some(element)));
    }

    #[test]
    fn elements_are_read_and_shown() {
        check("f:spec", ".spec");
        check("f:kubectl.kubernetes.io/x:y", ".kubectl.kubernetes.io/x:y");
        check(r#"k:{"protocol":"TCP","port":80}"#, r#"[port=80,protocol="TCP"]"#);
        check(r#"v:"a \"b\"""#, r#"[="a \"b\""]"#);
        check("v:1.5", "[=1.5]");
        check("v:true", "[=true]");
        check("i:3", "[3]");
    }

    #[test]
    fn keys_are_written_sorted() {
        let element = PathElement::key([("b", json!(1)), ("a", json!("x"))]);
        assert_eq!(element.to_wire(), r#"k:{"a":"x","b":1}"#);
    }

    #[test]
    fn unknown_kinds_are_skipped_and_broken_ones_refused() {
        assert_eq!(PathElement::from_wire("x:1"), Ok(None));
        for text in ["", "f", "ab", "spec", "k:[]", "k:{", "v:", "i:x", "i:-1", "é"] {
            assert!(PathElement::from_wire(text).is_err(), "{text:?} was read");
        }
    }

    #[test]
    fn fields_come_before_keys_values_and_indexes() {
        let wires = [
            "f:a",
            "f:b",
            r#"k:{"name":"a"}"#,
            r#"k:{"name":"a","x":1}"#,
            r#"k:{"name":"b"}"#,
            "v:1",
            "v:\"a\"",
            "i:0",
            "i:2",
        ];
        let elements: Vec<_> = wires.iter().map(|wire| PathElement::from_wire(wire).unwrap().unwrap()).collect();
        assert!(elements.is_sorted(), "{elements:?}");
    }
}
