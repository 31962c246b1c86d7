//! Messages of protobuf, field by field.

use serde_json::{Map, Value};

/// The members of an object; none of what is no object.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// The items of a list; none of what is no list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The bytes of a message; what is absent or has its default is not written.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

/// The simple words of a schema and their numbers, by what their values are.
pub(super) struct Words {
    pub(super) texts: &'static [(u64, &'static str)],
    pub(super) truths: &'static [(u64, &'static str)],
    pub(super) doubles: &'static [(u64, &'static str)],
    pub(super) integers: &'static [(u64, &'static str)],
}

impl Message {
    /// The message on the wire.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// A message with one field, which is a message.
    pub(super) fn of(number: u64, inner: &Message) -> Self {
        let mut message = Self::default();
        message.message(number, inner);
        message
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, number: u64, wire: u64) {
        self.varint(number << 3 | wire);
    }

    /// Writes bytes or a text.
    pub(super) fn bytes(&mut self, number: u64, bytes: &[u8]) {
        self.key(number, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a message.
    pub(super) fn message(&mut self, number: u64, inner: &Message) {
        self.bytes(number, &inner.0);
    }

    /// Writes a text, unless it is empty or none.
    pub(super) fn text(&mut self, number: u64, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    /// Writes all texts of a list.
    pub(super) fn texts(&mut self, number: u64, value: &Value) {
        list(value).iter().for_each(|value| self.text(number, value));
    }

    /// Writes a truth value, whatever it is.
    pub(super) fn flag(&mut self, number: u64, value: bool) {
        self.key(number, VARINT);
        self.varint(value.into());
    }

    /// Writes a number, whatever it is.
    pub(super) fn number(&mut self, number: u64, value: f64) {
        self.key(number, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes what is true.
    pub(super) fn truth(&mut self, number: u64, value: &Value) {
        if value == &Value::Bool(true) {
            self.flag(number, true);
        }
    }

    /// Writes a whole number.
    pub(super) fn integer(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_u64().filter(|value| *value != 0) {
            self.key(number, VARINT);
            self.varint(value);
        }
    }

    /// Writes a number.
    pub(super) fn double(&mut self, number: u64, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.number(number, value);
        }
    }

    /// Writes the simple words of a schema.
    pub(super) fn words(&mut self, found: &Value, words: &Words) {
        words.texts.iter().for_each(|(number, word)| self.text(*number, &found[word]));
        words.truths.iter().for_each(|(number, word)| self.truth(*number, &found[word]));
        words.doubles.iter().for_each(|(number, word)| self.double(*number, &found[word]));
        words.integers.iter().for_each(|(number, word)| self.integer(*number, &found[word]));
    }

    /// A value of any kind, as YAML, of which JSON is a part.
    pub(super) fn any(&mut self, number: u64, value: &Value) {
        if !value.is_null() {
            let mut any = Message::default();
            any.bytes(2, value.to_string().as_bytes());
            self.message(number, &any);
        }
    }

    /// Writes an entry of a map.
    pub(super) fn named(&mut self, number: u64, name: &str, value: &Message) {
        let mut named = Message::default();
        named.bytes(1, name.as_bytes());
        named.message(2, value);
        self.message(number, &named);
    }

    /// Writes all members that begin with `x-`.
    pub(super) fn extensions(&mut self, number: u64, of: &Value) {
        for (name, value) in members(of).filter(|(name, _)| name.starts_with("x-")) {
            let mut any = Message::default();
            any.bytes(2, value.to_string().as_bytes());
            self.named(number, name, &any);
        }
    }
}
