//! What the API server is to check of a value, entered into its schema.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

use crate::resource::Rule;

const RULES: &str = "x-kubernetes-validations";
const PRESERVE_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
/// Marks a field for [`Immutables`], which removes it.
const IMMUTABLE: &str = "x-windlass-immutable";

/// Names that an expression cannot use as they are.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Constraints on a field or a type, as `#[derive(Schema)]` writes them.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    keywords: Vec<(&'static str, Value)>,
    rules: Vec<Value>,
    items: Option<Box<Constraints>>,
    is_not_null: bool,
    is_immutable: bool,
}

impl Constraints {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a keyword of the schema.
    #[must_use]
    pub fn set(mut self, keyword: &'static str, value: Value) -> Self {
        self.keywords.push((keyword, value));
        self
    }

    /// With a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule.to_value());
        self
    }

    /// With constraints on each item of a list, or each value of a map.
    #[must_use]
    pub fn items(mut self, items: Self) -> Self {
        self.items = Some(Box::new(items));
        self
    }

    /// With no room for `null`, also where the type has one.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.is_not_null = true;
        self
    }

    /// Once there, the value stays.
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.is_immutable = true;
        self
    }

    fn enter(&self, schema: &mut Map<String, Value>) {
        if self.is_not_null {
            remove_null(schema);
        }
        if self.is_immutable {
            schema.insert(IMMUTABLE.into(), true.into());
        }
        let target = value_schema(schema);
        for (keyword, value) in &self.keywords {
            target.insert((*keyword).into(), value.clone());
        }
        // A schema of values, though it allows all, has the fields in them removed.
        let allows_all =
            target.get("additionalProperties").is_some_and(|schema| *schema == true || *schema == json!({}));
        if target.contains_key(PRESERVE_UNKNOWN) && allows_all {
            target.remove("additionalProperties");
        }
        add_rules(target, self.rules.iter().cloned());
        if let Some(items) = &self.items {
            let place = if target.contains_key("items") { "items" } else { "additionalProperties" };
            let schema = target.entry(place).or_insert_with(|| json!({}));
            if !schema.is_object() {
                *schema = json!({});
            }
            items.enter(schema.as_object_mut().expect("it was made one"));
        }
    }
}

impl Transform for Constraints {
    fn transform(&mut self, schema: &mut Schema) {
        self.enter(schema.ensure_object());
    }
}

/// Makes rules of the marks of immutable fields. A rule on a field does not see it come or go: its type does.
#[derive(Clone, Copy, Debug)]
pub struct Immutables;

impl Transform for Immutables {
    fn transform(&mut self, schema: &mut Schema) {
        let schema = schema.ensure_object();
        let required: Vec<String> = (schema.get("required").and_then(Value::as_array).into_iter().flatten())
            .filter_map(|name| name.as_str().map(Into::into))
            .collect();
        let mut rules = Vec::new();
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            let Some(property) = property.as_object_mut() else { continue };
            if property.remove(IMMUTABLE).is_none() {
                continue;
            }
            let comes_back =
                required.contains(name) || property.get("default").is_some_and(|default| !default.is_null());
            if !comes_back {
                let field = cel_name(name);
                rules.push(json!({
                    "rule": format!("!has(oldSelf.{field}) || has(self.{field})"),
                    "message": format!("{name} is immutable: it cannot be removed"),
                }));
            }
            let unchanged = json!({"rule": "self == oldSelf", "message": format!("{name} is immutable")});
            add_rules(value_schema(property), [unchanged]);
        }
        add_rules(schema, rules);
    }
}

fn add_rules(schema: &mut Map<String, Value>, rules: impl IntoIterator<Item = Value>) {
    let mut rules = rules.into_iter().peekable();
    if rules.peek().is_none() {
        return;
    }
    let all = schema.entry(RULES).or_insert_with(|| json!([]));
    all.as_array_mut().expect("rules are a list").extend(rules);
}

/// The schema of a value that is there: for an `Option`, that of what is in it.
fn value_schema(schema: &mut Map<String, Value>) -> &mut Map<String, Value> {
    if some_index(schema).is_none() {
        return schema;
    }
    let index = some_index(schema).unwrap_or_default();
    let inner = schema.get_mut("anyOf").and_then(|any_of| any_of.get_mut(index)).and_then(Value::as_object_mut);
    inner.expect("it was found there")
}

/// Which of two alternatives is not `null`.
fn some_index(schema: &Map<String, Value>) -> Option<usize> {
    let alternatives = schema.get("anyOf")?.as_array()?;
    let is_null = |alternative: &Value| alternative["type"] == "null";
    match alternatives.as_slice() {
        [some, null] if is_null(null) && some.is_object() => Some(0),
        [null, some] if is_null(null) && some.is_object() => Some(1),
        _ => None,
    }
}

fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(index) = some_index(schema) {
        let Some(Value::Array(mut alternatives)) = schema.remove("anyOf") else { return };
        let Value::Object(some) = alternatives.remove(index) else { return };
        let description = schema.remove("description");
        schema.extend(some);
        schema.extend(description.map(|description| ("description".to_owned(), description)));
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|type_| type_ != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
}

/// How an expression names a field.
fn cel_name(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let escaped = name.replace("__", "__underscores__");
    escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Value, mut constraints: Constraints, expected: Value) {
        let mut schema = Schema::try_from(given).unwrap();
        constraints.transform(&mut schema);
        assert_eq!(schema.to_value(), expected);
    }

    #[test]
    fn constraints_are_on_the_value_not_on_its_absence() {
        let min = || Constraints::new().set("minimum", 1.into());
        check(json!({"type": "integer"}), min(), json!({"type": "integer", "minimum": 1}));
        check(
            json!({"anyOf": [{"type": "object"}, {"type": "null"}]}),
            min(),
            json!({"anyOf": [{"type": "object", "minimum": 1}, {"type": "null"}]}),
        );
        check(
            json!({"type": "array", "items": {"type": "integer"}}),
            Constraints::new().items(min()),
            json!({"type": "array", "items": {"type": "integer", "minimum": 1}}),
        );
        check(
            json!({"type": "object", "additionalProperties": true}),
            Constraints::new().set(PRESERVE_UNKNOWN, true.into()),
            json!({"type": "object", PRESERVE_UNKNOWN: true}),
        );
        check(
            json!({"type": "object", "additionalProperties": true}),
            Constraints::new().items(min()),
            json!({"type": "object", "additionalProperties": {"minimum": 1}}),
        );
        check(json!({"type": ["string", "null"]}), Constraints::new().not_null(), json!({"type": "string"}));
    }

    #[test]
    fn an_immutable_field_that_can_be_left_out_cannot_go() {
        let mut schema = Schema::try_from(json!({
            "required": ["a"],
            "properties": {
                "a": {"type": "string", IMMUTABLE: true},
                "b-c": {"type": "string", IMMUTABLE: true},
                "d": {"type": "string", "default": "x", IMMUTABLE: true},
                "e": {"type": "string"},
            },
        }))
        .unwrap();
        Immutables.transform(&mut schema);
        let schema = schema.to_value();
        let rules = schema[RULES].as_array().unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0]["rule"], "!has(oldSelf.b__dash__c) || has(self.b__dash__c)");
        let of = |name: &str| schema["properties"][name][RULES][0]["rule"].clone();
        assert_eq!((of("a"), of("d"), of("e")), ("self == oldSelf".into(), "self == oldSelf".into(), Value::Null));
        assert!(!schema.to_string().contains(IMMUTABLE), "{schema}");
    }
}
