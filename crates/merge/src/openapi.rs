//! A shape read from an OpenAPI document, for who has no schema library.

use std::sync::Arc;

use serde_json::Value;

use crate::shape::{ListType, MapType, Member, PatchStrategy, Shape, ValueType};

/// How many references and single `allOf` wraps are followed before a schema counts as unknown.
const REFERENCES_MAX: usize = 32;

/// A [`Shape`] over a JSON schema with the `x-kubernetes-*` extensions.
///
/// References (`#/components/schemas/…`, `#/definitions/…`) are looked up in the document that the shape was made from.
/// Recursive types are fine: nothing is resolved before it is asked for.
#[derive(Clone, Debug)]
pub struct OpenApiShape {
    document: Arc<Value>,
    // The ways to the schema and to the member or item that refers to it: extensions may be on either.
    site: String,
    target: String,
    keys: Arc<[String]>,
}

impl OpenApiShape {
    /// The shape of a schema that stands alone.
    pub fn new(schema: Value) -> Self {
        Self::located(Arc::new(schema), String::new()).unwrap_or_else(|| unreachable!("the root is always there"))
    }

    /// The shape of the schema at `pointer`, such as `/components/schemas/io.k8s.api.core.v1.Pod`.
    pub fn at(document: Arc<Value>, pointer: &str) -> Option<Self> {
        Self::located(document, pointer.to_owned())
    }

    fn located(document: Arc<Value>, site: String) -> Option<Self> {
        let target = resolve(&document, &site)?;
        let shape = Self { document, site, target, keys: Arc::new([]) };
        let keys = shape.extension("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let keys = keys.map(|keys| keys.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        let merge_key = || shape.text("x-kubernetes-patch-merge-key").map(|key| Arc::from([key.to_owned()]));
        let keys = keys.or_else(merge_key).unwrap_or_else(|| Arc::new([]));
        Some(Self { keys, ..shape })
    }

    fn child(&self, steps: &[&str]) -> Option<Self> {
        let escaped = steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
        Self::located(Arc::clone(&self.document), self.target.clone() + &escaped.collect::<String>())
    }

    fn schema(&self) -> Option<&Value> {
        self.document.pointer(&self.target)
    }

    fn extension(&self, name: &str) -> Option<&Value> {
        self.document.pointer(&self.site)?.get(name).or_else(|| self.schema()?.get(name))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.extension(name)?.as_str()
    }
}

impl Shape for OpenApiShape {
    fn field(&self, name: &str) -> Option<Self> {
        match self.membership(name) {
            Member::Declared => self.child(&["properties", name]),
            _ if self.schema()?.get("additionalProperties")?.is_object() => self.child(&["additionalProperties"]),
            _ => None,
        }
    }

    fn membership(&self, name: &str) -> Member {
        let Some(schema) = self.schema() else { return Member::Free };
        let properties = schema.get("properties").and_then(Value::as_object);
        let preserved = self.extension("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        match (properties, schema.get("additionalProperties")) {
            (Some(properties), _) if properties.contains_key(name) => Member::Declared,
            (_, Some(additional)) if additional != &Value::Bool(false) => Member::Free,
            (Some(properties), _) if !properties.is_empty() && !preserved => Member::Undeclared,
            _ => Member::Free,
        }
    }

    fn item(&self) -> Option<Self> {
        self.child(&["items"])
    }

    fn map_type(&self) -> MapType {
        match self.text("x-kubernetes-map-type") {
            Some("atomic") => MapType::Atomic,
            _ => MapType::Granular,
        }
    }

    fn list_type(&self) -> ListType<'_> {
        match self.text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(&self.keys),
            None if self.patch_strategy().merge && self.keys.is_empty() => ListType::Set,
            None if self.patch_strategy().merge => ListType::Map(&self.keys),
            _ => ListType::Atomic,
        }
    }

    fn field_default(&self, name: &str) -> Option<Value> {
        self.child(&["properties", name])?.extension("default").cloned()
    }

    fn patch_strategy(&self) -> PatchStrategy<'_> {
        let strategies = self.text("x-kubernetes-patch-strategy").unwrap_or_default();
        let has = |strategy: &str| strategies.split(',').any(|given| given == strategy);
        PatchStrategy {
            merge: has("merge"),
            merge_key: self.text("x-kubernetes-patch-merge-key"),
            retain_keys: has("retainKeys"),
            replace: has("replace"),
        }
    }

    fn value_type(&self) -> Option<ValueType> {
        let several = self.extension("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
        let word = |name: &str| self.schema()?.get(name)?.as_str();
        ValueType::of_schema(word("type")?, word("format")).filter(|_| !several)
    }
}

/// Follows references from `pointer` to the schema that is meant.
fn resolve(document: &Value, pointer: &str) -> Option<String> {
    let mut pointer = pointer.to_owned();
    for _ in 0..REFERENCES_MAX {
        let schema = document.pointer(&pointer)?;
        let reference = schema.get("$ref").or_else(|| match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref"),
            _ => None,
        });
        match reference.and_then(Value::as_str) {
            Some(reference) => pointer = reference.strip_prefix('#')?.to_owned(),
            None => return Some(pointer),
        }
    }
    None
}
