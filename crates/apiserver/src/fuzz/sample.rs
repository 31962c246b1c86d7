//! Values that nearly fit a schema, made from bytes.

use serde_json::{Map, Value, json};
use windlass_merge::Shape as _;
use windlass_schema::Schema;

/// How deep a value goes.
const DEPTH_MAX: usize = 12;
/// How many fields of a map are filled, and how many items a list has.
const FIELDS_MAX: u8 = 6;
const ITEMS_MAX: u8 = 4;

/// Texts that mean something somewhere.
const TEXTS: [&str; 40] = [
    "",
    "a",
    "b",
    "web",
    "a.b/c",
    "a-b.example.com",
    "Always",
    "TCP",
    "UDP",
    "ClusterIP",
    "None",
    "LoadBalancer",
    "ExternalName",
    "RollingUpdate",
    "Recreate",
    "OnDelete",
    "Never",
    "In",
    "Exists",
    "DoesNotExist",
    "NotIn",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "100m",
    "1Gi",
    "-1",
    "1e3",
    "10%",
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.123456Z",
    "* * * * *",
    "@daily",
    "self.a == 1",
    "v1",
    "apps/v1",
    "*",
    "Deployment",
    "deployments",
    "rbac.authorization.k8s.io",
];

/// Numbers at which something changes.
const NUMBERS: [i64; 16] =
    [0, 1, 2, 3, 10, 80, 443, 65535, 65536, 30000, 86400, -1, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];

/// Bytes that decide.
pub(super) struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte; zero when there are no more.
    pub(super) fn byte(&mut self) -> u8 {
        let [first, rest @ ..] = self.0 else { return 0 };
        self.0 = rest;
        *first
    }

    /// One of `all`.
    pub(super) fn pick<'v, T>(&mut self, all: &'v [T]) -> &'v T {
        let index = u16::from_le_bytes([self.byte(), if all.len() > 256 { self.byte() } else { 0 }]);
        &all[usize::from(index) % all.len()]
    }

    /// A value for a schema, mostly.
    pub(super) fn value(&mut self, schema: &Schema) -> Value {
        self.deep(schema, DEPTH_MAX)
    }

    fn deep(&mut self, schema: &Schema, depth: usize) -> Value {
        let decision = self.byte();
        if depth == 0 || self.0.is_empty() {
            return Value::Null;
        }
        match decision {
            0 => return Value::Null,
            1..8 => return self.other(),
            _ => {}
        }
        if schema.is_int_or_string() {
            return if decision.is_multiple_of(2) { self.number() } else { self.text() };
        }
        match schema.type_name() {
            Some("string") => self.text(),
            Some("integer" | "number") => self.number(),
            Some("boolean") => (decision.is_multiple_of(2)).into(),
            Some("array") => {
                let Some(items) = schema.items() else { return json!([]) };
                let mut items: Vec<_> = (0..decision % ITEMS_MAX).map(|_| self.deep(items, depth - 1)).collect();
                identify(&mut items, schema);
                items.into()
            }
            _ => self.object(schema, depth, decision % FIELDS_MAX),
        }
    }

    fn object(&mut self, schema: &Schema, depth: usize, fields: u8) -> Value {
        let mut object = Map::new();
        let properties: Vec<_> = schema.properties().collect();
        for _ in 0..fields {
            if let (false, 0..240) = (properties.is_empty(), self.byte()) {
                let (name, property) = *self.pick(&properties);
                object.insert(name.to_owned(), self.deep(property, depth - 1));
            } else {
                let name = self.text().as_str().unwrap_or_default().to_owned();
                let value = match schema.additional_properties() {
                    Some(additional) => self.deep(additional, depth - 1),
                    None => self.other(),
                };
                object.insert(name, value);
            }
        }
        Value::Object(object)
    }

    fn text(&mut self) -> Value {
        match self.byte() {
            length @ 0..24 => {
                let bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
                String::from_utf8_lossy(&bytes).into_owned().into()
            }
            24..28 => "x".repeat(usize::from(self.byte())).into(),
            index => TEXTS[usize::from(index) % TEXTS.len()].into(),
        }
    }

    fn number(&mut self) -> Value {
        match self.byte() {
            0 => 1.5.into(),
            1 => 1e300.into(),
            2 => u64::MAX.into(),
            byte @ 3..100 => byte.into(),
            index => NUMBERS[usize::from(index) % NUMBERS.len()].into(),
        }
    }

    /// Something that most likely does not fit.
    fn other(&mut self) -> Value {
        match self.byte() % 8 {
            0 => json!({}),
            1 => json!([]),
            2 => json!(true),
            3 => json!({"a": {"b": null}}),
            4 => json!([null, 1, "a", [], {}]),
            5 => self.number(),
            _ => self.text(),
        }
    }
}

/// Gives the items of a list what tells them apart, since few have it by chance.
fn identify(items: &mut [Value], list: &Schema) {
    let Some(key) = list.patch_strategy().merge_key else { return };
    let is_text = list.items().and_then(|item| item.member(key)).and_then(Schema::type_name) == Some("string");
    for (index, item) in items.iter_mut().enumerate() {
        let Value::Object(item) = item else { continue };
        let identity = || if is_text { TEXTS[index + 1].into() } else { index.into() };
        item.entry(key).or_insert_with(identity);
    }
}
