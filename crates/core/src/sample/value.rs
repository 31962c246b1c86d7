//! Objects made after a schema, for checks.

use serde_json::{Map, Value, json};

use super::pattern;

/// How often a text after a pattern is made until it is as long as it may be.
const ATTEMPTS_MAX: usize = 20;

/// Numbers that look like chance and are the same in every run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// How much of what can be left out is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing of it.
    Nothing,
    /// All of it.
    Everything,
    /// Some of it, by chance.
    Some,
}

impl Dice {
    /// Numbers that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    fn one<'a>(&mut self, of: &'a [Value]) -> &'a Value {
        &of[usize::try_from(self.below(of.len() as u64)).unwrap_or_default()]
    }
}

/// A value that `schema` describes.
pub fn value(schema: &Value, fill: Fill, dice: &mut Dice) -> Value {
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return dice.one(values).clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return if dice.below(2) == 0 { json!(dice.below(100)) } else { json!(format!("{}%", dice.below(100))) };
    }
    match schema["type"].as_str() {
        Some("integer") => integer(schema, dice).into(),
        Some("number") => json!(integer(schema, dice) as f64 + [0.0, 0.5][dice.below(2) as usize]),
        Some("boolean") => (dice.below(2) == 1).into(),
        Some("string") => text(schema, dice).into(),
        Some("array") => list(schema, fill, dice),
        _ => object(schema, fill, dice),
    }
}

fn integer(schema: &Value, dice: &mut Dice) -> i64 {
    let limit = |name: &str| schema[name].as_f64().map(|limit| limit as i64);
    let lowest = limit("minimum").unwrap_or(-1000);
    let highest = limit("maximum").unwrap_or(lowest.saturating_add(2000));
    match dice.below(4) {
        0 => lowest,
        1 => highest,
        _ => lowest.saturating_add_unsigned(dice.below(highest.abs_diff(lowest).saturating_add(1))),
    }
}

fn text(schema: &Value, dice: &mut Dice) -> String {
    let stamp = || "2026-01-02T03:04:05Z".to_owned();
    match schema["format"].as_str() {
        Some("date-time") => return stamp(),
        Some("date") => return "2026-01-02".into(),
        Some("duration") => return format!("{}s", dice.below(100)),
        _ => {}
    }
    let size = |name: &str| schema[name].as_u64();
    if let Some(pattern) = schema["pattern"].as_str() {
        let (least, most) = (size("minLength").unwrap_or(0), size("maxLength").unwrap_or(u64::MAX));
        let made = (0..ATTEMPTS_MAX).filter_map(|_| pattern::text(pattern, dice));
        let is_fit = |text: &String| {
            let length = text.chars().count() as u64;
            (least..=most).contains(&length) && pattern::matches(pattern, text)
        };
        let default = || schema["default"].as_str().map(str::to_owned);
        if let Some(text) = made.into_iter().find(is_fit).or_else(default) {
            return text;
        }
    }
    let shortest = size("minLength").unwrap_or(0);
    let longest = size("maxLength").unwrap_or(shortest + 8).min(shortest + 32);
    let length = shortest + dice.below(longest.saturating_sub(shortest) + 1);
    (0..length).map(|_| char::from(b'a' + u8::try_from(dice.below(26)).unwrap_or_default())).collect()
}

fn list(schema: &Value, fill: Fill, dice: &mut Dice) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or(0);
    let most = schema["maxItems"].as_u64().unwrap_or(least + 3).min(least + 3);
    let length = match fill {
        Fill::Nothing => least,
        Fill::Everything => most,
        Fill::Some => least + dice.below(most.saturating_sub(least) + 1),
    };
    let mut items: Vec<Value> = Vec::new();
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let is_same = |a: &Value, b: &Value| match keys {
        Some(keys) => keys.iter().filter_map(Value::as_str).all(|key| a.get(key) == b.get(key)),
        None => schema["x-kubernetes-list-type"] == "set" && a == b,
    };
    for _ in 0..length {
        let item = value(&schema["items"], fill, dice);
        if !items.iter().any(|known| is_same(known, &item)) {
            items.push(item);
        }
    }
    items.into()
}

fn object(schema: &Value, fill: Fill, dice: &mut Dice) -> Value {
    let required =
        |schema: &Value, name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    // Of the variants of an enum there is one.
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let chosen = if variants.is_empty() { Value::Null } else { dice.one(&variants).clone() };
    let is_of_a_variant = |name: &str| variants.iter().any(|variant| required(variant, name));
    let mut fields = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_there = if is_of_a_variant(name) {
            required(&chosen, name)
        } else {
            required(schema, name) || fill == Fill::Everything || (fill == Fill::Some && dice.below(2) == 0)
        };
        if is_there {
            fields.insert(name.clone(), value(field, fill, dice));
        }
    }
    if schema["additionalProperties"].is_object() && fill != Fill::Nothing {
        for index in 0..1 + dice.below(2) {
            fields.insert(format!("key-{index}"), value(&schema["additionalProperties"], fill, dice));
        }
    }
    fields.into()
}
