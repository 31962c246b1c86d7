//! Whether an answer of the API has all that was wished. Most answers have, and to see that neither side has to be made into
//! the values that a comparison needs.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Whether `text` has every member of `wish`, with its value, and lists item by item. What says the same in other words, such
/// as a quantity, is not found here: then a comparison decides.
pub(super) fn contains(text: &str, wish: &Value) -> bool {
    Part(wish).deserialize(&mut serde_json::Deserializer::from_str(text)).is_ok()
}

/// A part of the wish, beside the part of the answer at the same place. The first difference is an error, which ends it.
struct Part<'a>(&'a Value);

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, answer: D) -> Result<(), D::Error> {
        answer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what was wished")
    }

    fn visit_bool<E: Error>(self, answer: bool) -> Result<(), E> {
        same(self.0.as_bool() == Some(answer))
    }

    fn visit_i64<E: Error>(self, answer: i64) -> Result<(), E> {
        same(self.0.as_i64() == Some(answer))
    }

    fn visit_u64<E: Error>(self, answer: u64) -> Result<(), E> {
        same(self.0.as_u64() == Some(answer))
    }

    fn visit_f64<E: Error>(self, answer: f64) -> Result<(), E> {
        same(self.0.as_f64() == Some(answer))
    }

    fn visit_str<E: Error>(self, answer: &str) -> Result<(), E> {
        same(self.0.as_str() == Some(answer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut answer: A) -> Result<(), A::Error> {
        let items = self.0.as_array().ok_or_else(different)?;
        for item in items {
            answer.next_element_seed(Part(item))?.ok_or_else(different)?;
        }
        same(answer.next_element::<IgnoredAny>()?.is_none())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut answer: A) -> Result<(), A::Error> {
        let members: &Map<String, Value> = self.0.as_object().ok_or_else(different)?;
        let mut found = 0;
        while let Some(Name(name)) = answer.next_key::<Name<'de>>()? {
            match members.get(&*name) {
                Some(member) => {
                    answer.next_value_seed(Part(member))?;
                    found += 1;
                }
                None => drop(answer.next_value::<IgnoredAny>()?),
            }
        }
        same(found == members.len())
    }
}

/// The name of a member, which is copied only where it is written with escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn same<E: Error>(is_same: bool) -> Result<(), E> {
    if is_same { Ok(()) } else { Err(different()) }
}

fn different<E: Error>() -> E {
    E::custom("different")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_wished_is_found_among_other_things() {
        let wish = json!({"a": {"b": [1, {"c": "x"}], "e": {}}, "t": true, "n": -3, "f": 1.5});
        let check = |text: &str, expected: bool| assert_eq!(contains(text, &wish), expected, "{text}");
        check(
            r#"{"a": {"b": [1, {"c": "x", "d": null}], "e": {"z": 1}}, "t": true, "n": -3, "f": 1.5, "g": [{}]}"#,
            true,
        );
        check(r#"{"\u0061": {"b": [1, {"c": "\u0078"}], "e": {}}, "t": true, "n": -3, "f": 1.5}"#, true);
        check(r#"{"a": {"b": [1, {"c": "x"}, 2], "e": {}}, "t": true, "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1], "e": {}}, "t": true, "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1, {"c": "y"}], "e": {}}, "t": true, "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1, {"c": "x"}]}, "t": true, "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1, {"c": "x"}], "e": null}, "t": true, "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1, {"c": "x"}], "e": {}}, "t": "true", "n": -3, "f": 1.5}"#, false);
        check(r#"{"a": {"b": [1, {"c": "x"}], "e": {}}, "t": true, "n": 3, "f": 1.5}"#, false);
        check("[]", false);
        check("", false);
        assert!(!contains(r#"{"a": null}"#, &json!({"a": null})), "a wish for nothing is left to the comparison");
    }
}
