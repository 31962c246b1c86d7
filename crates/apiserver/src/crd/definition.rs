//! A CustomResourceDefinition as the server reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The group of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// The resource of definitions.
pub(crate) const RESOURCE: &str = "customresourcedefinitions";
/// What keeps a definition until its objects are gone.
pub(crate) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition; what the server does not look at is left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Definition {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) generate_name: String,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) scope: String,
    #[serde(deserialize_with = "or_none")]
    pub(crate) versions: Vec<Version>,
    pub(crate) conversion: Option<Conversion>,
    pub(crate) preserve_unknown_fields: bool,
}

/// The names under which a kind is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Names {
    pub(crate) plural: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) singular: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) list_kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the API has them")]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    pub(crate) schema: Option<Validation>,
    pub(crate) subresources: Option<Subresources>,
    pub(crate) additional_printer_columns: Vec<Value>,
    pub(crate) selectable_fields: Vec<SelectableField>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Validation {
    #[serde(default, rename = "openAPIV3Schema")]
    pub(crate) open_api_v3_schema: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<Value>,
    pub(crate) scale: Option<Scale>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Scale {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conversion {
    pub(crate) strategy: String,
    pub(crate) webhook: Option<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    #[serde(deserialize_with = "or_none")]
    pub(crate) conditions: Vec<Condition>,
    pub(crate) accepted_names: Names,
    #[serde(deserialize_with = "or_none")]
    pub(crate) stored_versions: Vec<String>,
}

/// A list, of which `null` has none.
fn or_none<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Vec<T>, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// One condition of a definition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "empty_if_null")]
    pub(crate) last_transition_time: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
}

/// Clients write times that they do not know as null.
fn empty_if_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Definition {
    /// Reads an object; members of the wrong type make it unreadable, which the schema has refused before.
    pub(crate) fn read(object: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(object)
    }

    /// The condition of a type.
    pub(crate) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.r#type == kind)
    }

    /// Whether the condition of a type is true.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Whether deletion has begun.
    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The version that objects are stored in.
    pub(crate) fn storage_version(&self) -> Option<&str> {
        self.spec.versions.iter().find(|version| version.storage).map(|version| version.name.as_str())
    }
}

/// Fills in the names that a definition may leave out, and the strategy of conversion.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("conversion").or_insert_with(|| serde_json::json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let empty = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().is_empty();
    if !kind.is_empty() && empty(names.get("singular")) {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if !kind.is_empty() && empty(names.get("listKind")) {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
}
