//! JSON and YAML texts as values, with the keys that occur twice.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value, and what was odd about its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    /// The value; of keys that occur twice the last one counts.
    pub(crate) value: Value,
    /// What there is to say of keys that occur twice.
    pub(crate) duplicates: Vec<String>,
}

/// How many keys that occur twice are told of; the paths of all of them could be far longer than the text.
const DUPLICATES_MAX: usize = 100;

/// How much of a YAML text may be repeated by aliases: aliases of aliases multiply.
const REPEATED_MAX: usize = 100_000;

/// Reads a JSON text.
pub(crate) fn parse_json(text: &[u8]) -> Result<Document, String> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let seed = Node { path: &Path::Root, duplicates: &mut duplicates };
    let value = seed.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(Document { value, duplicates })
}

/// Reads a YAML text, which JSON is too.
pub(crate) fn parse_yaml(text: &[u8]) -> Result<Document, String> {
    let read = |policy| {
        let options = serde_saphyr::options! {
            duplicate_keys: policy,
            with_snippet: false,
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
        };
        serde_saphyr::from_slice_with_options::<Value>(text, options)
    };
    match read(serde_saphyr::DuplicateKeyPolicy::Error) {
        Ok(value) => Ok(Document { value, duplicates: Vec::new() }),
        // Reading again helps against nothing else, and what is refused may have taken long.
        Err(error) if !is_twice(&error) => Err(error.to_string()),
        Err(strict) => match read(serde_saphyr::DuplicateKeyPolicy::LastWins) {
            Ok(value) => Ok(Document { value, duplicates: vec![twice(&strict)] }),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn is_twice(error: &serde_saphyr::Error) -> bool {
    matches!(error.without_snippet(), serde_saphyr::Error::DuplicateMappingKey { .. })
}

/// How clients know the complaint: by the line of the second of the keys.
fn twice(error: &serde_saphyr::Error) -> String {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), location } => {
            format!("yaml: unmarshal errors:\n  line {}: key {key:?} already set in map", location.line())
        }
        other => other.to_string(),
    }
}

/// Where in the text the reader is.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => formatter.write_str(name),
            Self::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

/// Reads one value.
struct Node<'a> {
    path: &'a Path<'a>,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let path = Path::Item(self.path, list.len());
            match items.next_element_seed(Node { path: &path, duplicates: &mut *self.duplicates })? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let path = Path::Member(self.path, &key);
            let value = members.next_value_seed(Node { path: &path, duplicates: &mut *self.duplicates })?;
            if self.duplicates.len() < DUPLICATES_MAX && map.contains_key(&key) {
                self.duplicates.push(format!("duplicate field \"{path}\""));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_that_occur_twice_are_found_and_the_last_counts() {
        let text = br#"{"spec": {"a": 1, "a": 2, "list": [{"b": 1}, {"b": 1, "b": null}]}, "n": -1.5}"#;
        let document = parse_json(text).unwrap();
        assert_eq!(document.value, json!({"spec": {"a": 2, "list": [{"b": 1}, {"b": null}]}, "n": -1.5}));
        assert_eq!(document.duplicates, [r#"duplicate field "spec.a""#, r#"duplicate field "spec.list[1].b""#]);
    }

    #[test]
    fn many_keys_that_occur_twice_do_not_fill_the_memory() {
        let text = format!(r#"{{"{}": {{{}"a": 1}}}}"#, "x".repeat(1 << 20), r#""a": 1,"#.repeat(200_000));
        assert_eq!(parse_json(text.as_bytes()).unwrap().duplicates.len(), DUPLICATES_MAX);
    }

    #[test]
    fn yaml_that_nests_or_grows_without_end_is_refused() {
        let bomb: String = (0..20)
            .map(|level| format!("l{}: &l{} [{}]\n", level + 1, level + 1, format!("*l{level},").repeat(9)))
            .collect();
        for text in ["[".repeat(1 << 16), "- ".repeat(1 << 16), "{a: ".repeat(1 << 16), format!("l0: &l0 x\n{bomb}")] {
            assert!(parse_yaml(text.as_bytes()).is_err());
        }
    }

    #[test]
    fn numbers_stay_as_they_are() {
        let value = parse_json(b"[184467440733372036854775808,0.1,1e-310]").unwrap().value;
        assert_eq!(parse_json(value.to_string().as_bytes()).unwrap().value, value);
        assert_eq!(value.to_string(), "[1.8446744073337202e+26,0.1,1e-310]");
    }

    #[test]
    fn broken_texts_are_errors() {
        assert!(parse_json(b"{").is_err());
        assert!(parse_json(b"{} {}").is_err());
        assert!(parse_yaml(b"a: [").is_err());
        assert!(parse_json("[".repeat(200).as_bytes()).is_err(), "nesting is limited");
    }

    #[test]
    fn yaml_is_read_as_kubernetes_reads_it() {
        let document = parse_yaml(b"a: \"1\"\nb: 1\nc: [x, yes]\nd:\n  e: null\n").unwrap();
        assert_eq!(document.value, json!({"a": "1", "b": 1, "c": ["x", true], "d": {"e": null}}));
        let twice = parse_yaml(b"a: 1\na: 2\n").unwrap();
        assert_eq!(twice.value, json!({"a": 2}));
        assert_eq!(twice.duplicates, ["yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"]);
    }
}
