//! A cheap handle on the schema of a value, the same for built-in and for custom kinds.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::definition;
use crate::node::{Additional, Node};

/// The schema of a value: a clone is a pointer, references are followed when they are asked for.
#[derive(Clone)]
pub struct Schema(Handle);

#[derive(Clone)]
enum Handle {
    /// A built-in definition, not yet looked at.
    Definition(Arc<str>),
    Node(Arc<Node>),
}

static EMPTY: std::sync::LazyLock<Node> = std::sync::LazyLock::new(Node::default);

impl Schema {
    /// The schema of the built-in OpenAPI definition `name`, parsed when it is first used. A name that does not exist
    /// gives a schema that knows nothing.
    pub fn of_definition(name: impl Into<Arc<str>>) -> Schema {
        Schema(Handle::Definition(name.into()))
    }

    pub(crate) fn of_node(node: Node) -> Schema {
        Schema(Handle::Node(Arc::new(node)))
    }

    /// The node as written here: what stands beside a reference counts before what is referred to.
    pub(crate) fn here(&self) -> &Node {
        match &self.0 {
            Handle::Definition(name) => definition::node(name).map_or(&EMPTY, |node| node),
            Handle::Node(node) => node,
        }
    }

    /// The node with the structure: the referred one where there is a reference.
    pub(crate) fn node(&self) -> &Node {
        let here = self.here();
        match &here.reference {
            Some(name) => definition::node(name).map_or(&EMPTY, |node| node),
            None => here,
        }
    }

    pub(crate) fn reference(&self) -> Option<&str> {
        self.here().reference.as_deref()
    }

    /// The name of the built-in definition behind the schema.
    pub(crate) fn definition_name(&self) -> Option<&str> {
        match &self.0 {
            Handle::Definition(name) => Some(name),
            Handle::Node(node) => node.reference.as_deref(),
        }
    }

    /// The OpenAPI JSON of a built-in definition, or of the schema that a custom one was made from. `None` inside of one.
    pub fn raw(&self) -> Option<Value> {
        match &self.0 {
            Handle::Definition(name) => {
                definition(name).map(|text| serde_json::from_str(text).expect("generated definitions are valid"))
            }
            Handle::Node(node) => node.raw.clone(),
        }
    }

    /// The schema of the member `name`: of the property, else of additional properties.
    pub fn member(&self, name: &str) -> Option<&Schema> {
        let words = &self.node().words;
        words.properties.get(name).or(match &words.additional_properties {
            Some(Additional::Of(schema)) => Some(schema),
            _ => None,
        })
    }

    /// The named properties, in order.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.node().words.properties.iter().map(|(name, schema)| (name.as_str(), schema))
    }

    /// The schema of values under any other name.
    pub fn additional_properties(&self) -> Option<&Schema> {
        match &self.node().words.additional_properties {
            Some(Additional::Of(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of the items of a list.
    pub fn items(&self) -> Option<&Schema> {
        self.node().words.items.as_ref()
    }

    /// The rules under `x-kubernetes-validations`, as written.
    pub fn validations(&self) -> &[Value] {
        &self.here().words.validations
    }

    /// The default, as written here.
    pub fn default_value(&self) -> Option<&Value> {
        self.here().words.default.as_ref()
    }

    /// Whether `null` is a value of its own.
    pub fn is_nullable(&self) -> bool {
        self.node().words.nullable
    }

    /// Whether members that the schema does not name are kept.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.node().words.preserve_unknown_fields
    }

    /// Whether the value is a whole object with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded_resource(&self) -> bool {
        self.node().words.embedded_resource
    }

    /// Whether the value is an integer or a string.
    pub fn is_int_or_string(&self) -> bool {
        let words = &self.node().words;
        words.int_or_string || words.format.as_deref() == Some("int-or-string")
    }

    /// The JSON type, as OpenAPI names it.
    pub fn type_name(&self) -> Option<&'static str> {
        self.node().words.r#type.map(crate::node::Type::name)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.definition_name() {
            // A definition can contain itself.
            Some(name) => formatter.debug_tuple("Schema").field(&name).finish(),
            None => formatter.debug_tuple("Schema").field(self.here()).finish(),
        }
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        Node::deserialize(deserializer).map(Schema::of_node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_followed_and_may_be_recursive() {
        let schema = Schema::of_definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
        let deep = schema.member("properties").and_then(|schema| schema.member("any")).unwrap();
        assert!(deep.member("properties").is_some());
        assert!(format!("{deep:?}").contains("JSONSchemaProps"));
    }

    #[test]
    fn what_stands_beside_a_reference_is_seen() {
        let schema = Schema::of_definition("io.k8s.api.apps.v1.Deployment");
        let spec = schema.member("spec").unwrap();
        assert_eq!(spec.default_value(), Some(&serde_json::json!({})));
        assert!(spec.member("replicas").is_some());
    }
}
