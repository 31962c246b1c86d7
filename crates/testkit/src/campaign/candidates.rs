//! The values that a property is changed to: few, and each for a reason.

use serde_json::{Value, json};
use windlass_core::sample::{self, Dice, Fill};

use super::change::minimal;
use super::meaning::{MANY, Meaning};
use super::properties::{KEY, Property};
use super::texts;

/// The largest number that is tried where a schema sets no limit.
const LARGE: i64 = i32::MAX as i64;
/// The most items of a list that are tried.
const ITEMS_MAX: u64 = 64;

/// What becomes of a property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// What it is called in plans.
    pub(crate) name: String,
    /// `None` if the property goes.
    pub(crate) value: Option<Value>,
    /// Whether the schema allows it.
    pub(crate) is_valid: bool,
}

/// The values to try for `property`, which is `present` now; `hints` are the author's.
pub(crate) fn of(property: &Property, present: Option<&Value>, hints: &[Value]) -> Vec<Candidate> {
    let mut found = Found { property, candidates: Vec::new() };
    for (number, hint) in hints.iter().enumerate() {
        found.add(&format!("hint-{number}"), hint.clone());
    }
    let schema = &property.schema;
    if let Some(values) = schema["enum"].as_array() {
        found.choices(values);
    } else if schema["x-kubernetes-int-or-string"] == true {
        found.meant();
        found.add("number", json!(1));
        found.add("percent", json!("50%"));
        found.refused("wrong-type", json!(true));
    } else {
        match schema["type"].as_str() {
            Some("boolean") => found.add("flipped", json!(present != Some(&json!(true)))),
            Some("integer") => found.integers(present.and_then(Value::as_i64)),
            Some("number") => found.numbers(present.and_then(Value::as_f64)),
            Some("string") => found.texts(present.and_then(Value::as_str)),
            Some("array") => found.lists(present.and_then(Value::as_array)),
            _ => found.objects(present),
        }
    }
    found.wrong_type();
    if present.is_some() || !property.can_go {
        found.candidates.push(Candidate { name: "removed".into(), value: None, is_valid: property.can_go });
    }
    found.different(present)
}

struct Found<'a> {
    property: &'a Property,
    candidates: Vec<Candidate>,
}

impl Found<'_> {
    fn add(&mut self, name: &str, value: Value) {
        let is_valid = sample::offence(&self.property.schema, &value).is_none();
        self.candidates.push(Candidate { name: name.to_owned(), value: Some(value), is_valid });
    }

    fn refused(&mut self, name: &str, value: Value) {
        self.candidates.push(Candidate { name: name.to_owned(), value: Some(value), is_valid: false });
    }

    /// Adds what the schema allows of the values that the property's meaning gives; tells whether there is one.
    fn meant(&mut self) -> Option<Meaning> {
        let meaning = Meaning::of(self.property)?;
        meaning.values().into_iter().for_each(|(name, value)| self.add(name, value));
        Some(meaning)
    }

    fn choices(&mut self, values: &[Value]) {
        for (number, value) in values.iter().enumerate() {
            let is_word =
                |text: &&str| text.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.'));
            let name = value.as_str().filter(is_word).map_or_else(|| format!("choice-{number}"), str::to_owned);
            self.add(&name, value.clone());
        }
        self.add("unknown-choice", json!("campaign-unknown"));
    }

    fn integers(&mut self, present: Option<i64>) {
        let limit = |name: &str, step: i64| {
            let exclusive = self.property.schema[&format!("exclusive{}", capital(name))] == true;
            let limit = self.property.schema[name].as_f64()? as i64;
            Some(if exclusive { limit.saturating_add(step) } else { limit })
        };
        let (least, most) = (limit("minimum", 1), limit("maximum", -1));
        let meaning = self.meant();
        // So many of something that costs are not made.
        let fits = |value: &i64| meaning != Some(Meaning::Count) || *value <= MANY * 2;
        if let Some(present) = present {
            self.add("up", json!(present.saturating_add(1)));
            self.add("down", json!(present.saturating_sub(1)));
        }
        let large = most.is_none().then_some(LARGE).filter(|_| meaning.is_none());
        let within = [("min", least), ("max", most), ("zero", Some(0)), ("one", Some(1)), ("large", large)];
        for (name, value) in within {
            if let Some(value) = value.filter(fits) {
                self.add(name, json!(value));
            }
        }
        let below = least.map(|least| least.saturating_sub(1));
        let above = most.map(|most| most.saturating_add(1));
        for (name, value) in [("below-min", below), ("above-max", above)] {
            if let Some(value) = value {
                self.add(name, json!(value));
            }
        }
        if least.is_none() {
            self.add("negative", json!(-1));
        }
    }

    fn numbers(&mut self, present: Option<f64>) {
        let limit = |name: &str| self.property.schema[name].as_f64();
        let (least, most) = (limit("minimum"), limit("maximum"));
        let up = present.map(|present| present + 0.5);
        let below = least.map(|least| least - 1.0);
        let above = most.map(|most| most + 1.0);
        let named = [
            ("up", up),
            ("min", least),
            ("max", most),
            ("half", Some(0.5)),
            ("below-min", below),
            ("above-max", above),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                self.add(name, json!(value));
            }
        }
    }

    fn texts(&mut self, present: Option<&str>) {
        let schema = &self.property.schema;
        let format = schema["format"].as_str().and_then(texts::of_format);
        let is_free = format.is_none() && schema["pattern"].is_null();
        let is_meant = self.meant().is_some();
        if let Some([right, wrong]) = format {
            self.add("of-format", json!(right));
            self.refused("not-of-format", json!(wrong));
        }
        if schema["pattern"].is_string() {
            for seed in [1, 2] {
                let made = sample::value(schema, Fill::Nothing, &mut Dice::new(seed));
                self.add(&format!("match-{seed}"), made);
            }
        }
        if is_free && !is_meant {
            let other = present.map_or("campaign".to_owned(), |present| format!("{present}x"));
            self.add("other", json!(other));
        }
        let odd =
            texts::odd(schema).into_iter().filter(|(name, _)| is_free && (!is_meant || *name == "metacharacters"));
        odd.for_each(|(name, text)| self.add(name, json!(text)));
        texts::wrong(schema).into_iter().for_each(|(name, text)| self.add(name, json!(text)));
    }

    fn lists(&mut self, present: Option<&Vec<Value>>) {
        let schema = &self.property.schema;
        let item = |seed: u64| sample::value(&schema["items"], Fill::Nothing, &mut Dice::new(seed));
        let present = present.cloned().unwrap_or_default();
        self.add("empty", json!([]));
        self.add("one", json!([item(1)]));
        self.add("pushed", json!([present.clone(), vec![item(2)]].concat()));
        if let Some((_, rest)) = present.split_last().filter(|(_, rest)| !rest.is_empty()) {
            self.add("popped", json!(rest));
            self.add("turned", present.iter().rev().cloned().collect());
        }
        let many = |count: u64| -> Value { (0..count).map(item).collect() };
        if let Some(most) = schema["maxItems"].as_u64().filter(|most| *most < ITEMS_MAX) {
            self.add("too-many", many(most + 1));
        }
        if let Some(least) = schema["minItems"].as_u64().filter(|least| *least > 0) {
            self.add("too-few", many(least - 1));
        }
    }

    fn objects(&mut self, present: Option<&Value>) {
        let schema = &self.property.schema;
        if schema["additionalProperties"].is_object() {
            let value = minimal(&schema["additionalProperties"]);
            let other = sample::value(&schema["additionalProperties"], Fill::Nothing, &mut Dice::new(3));
            let present = present.and_then(Value::as_object).cloned().unwrap_or_default();
            let with = |key: &str, value: &Value| {
                let mut map = present.clone();
                map.insert(key.to_owned(), value.clone());
                Value::from(map)
            };
            self.add("key-added", with(KEY, &value));
            if let Some(key) = present.keys().next() {
                self.add("key-changed", with(key, &other));
                let mut rest = present.clone();
                rest.remove(key);
                self.add("key-removed", rest.into());
            }
            self.add("empty", json!({}));
            return;
        }
        if present.is_none() {
            self.add("present", minimal(schema));
        }
        if schema["properties"].is_object() {
            self.add("full", sample::value(schema, Fill::Everything, &mut Dice::new(1)));
        } else if schema["x-kubernetes-preserve-unknown-fields"] == true {
            self.add("free-form", json!({KEY: "value"}));
        }
    }

    /// A value that can be of no use.
    fn wrong_type(&mut self) {
        let wrong = match self.property.schema["type"].as_str() {
            Some("string") => json!(7),
            Some(_) => json!("campaign"),
            None => return,
        };
        if self.property.schema["enum"].is_null() {
            self.add("wrong-type", wrong);
        }
    }

    /// Those that differ from what is `present` and from each other.
    fn different(self, present: Option<&Value>) -> Vec<Candidate> {
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in self.candidates {
            let is_known = kept.iter().any(|it| it.value == candidate.value || it.name == candidate.name);
            if candidate.value.as_ref() != present && !is_known {
                kept.push(candidate);
            }
        }
        kept
    }
}

fn capital(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, schema: Value, present: Option<Value>, valid: &str, invalid: &str) {
        let path = vec!["spec".to_owned(), name.to_owned()];
        let property = Property { path, schema, can_go: present.is_none(), is_leaf: true };
        let all = of(&property, present.as_ref(), &[]);
        let names = |is_valid: bool| -> String {
            let names = all.iter().filter(|it| it.is_valid == is_valid).map(|it| it.name.as_str());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!((names(true).as_str(), names(false).as_str()), (valid, invalid), "{name}");
    }

    #[test]
    fn each_shape_has_its_values() {
        check(
            "size",
            json!({"type": "integer", "minimum": 1, "maximum": 16}),
            Some(json!(1)),
            "two three many max",
            "none above-max wrong-type removed",
        );
        check(
            "weight",
            json!({"type": "integer"}),
            Some(json!(5)),
            "up down zero one large negative",
            "wrong-type removed",
        );
        check("tls", json!({"type": "boolean"}), Some(json!(false)), "flipped", "wrong-type removed");
        check("mode", json!({"type": "string", "enum": ["a", "b"]}), Some(json!("a")), "b", "unknown-choice removed");
        check(
            "text",
            json!({"type": "string", "maxLength": 5}),
            None,
            "empty short long",
            "other unicode metacharacters too-long wrong-type",
        );
        check("code", json!({"type": "string", "pattern": "^[a-c]$"}), None, "match-1 match-2", "no-match wrong-type");
        check(
            "tags",
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 2}),
            None,
            "empty one pushed",
            "too-many wrong-type",
        );
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        check("labels", map, Some(json!({"a": "1"})), "key-added key-changed key-removed", "wrong-type removed");
    }
}
