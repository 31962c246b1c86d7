//! One parsed schema node: the keywords of OpenAPI v3 and of Kubernetes that the algorithms look at.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::Schema;

/// A schema node. What is absent in the source is `None` or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, from = "Keywords")]
pub(crate) struct Node {
    pub(crate) words: Keywords,
    /// The definition that the node refers to, by `$ref` or by an `allOf` of one `$ref`.
    pub(crate) reference: Option<String>,
    /// The members that tell the items of a list apart; empty where items are no maps.
    pub(crate) map_keys: Vec<String>,
    /// Items are told apart at all.
    pub(crate) is_associative: bool,
    /// The schema as it was given; only at the root of a custom schema.
    pub(crate) raw: Option<Value>,
    pattern: OnceLock<Option<Regex>>,
}

/// The keywords as they are written.
#[expect(clippy::struct_excessive_bools, reason = "OpenAPI has as many")]
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Keywords {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    pub(crate) r#type: Option<Type>,
    pub(crate) format: Option<String>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional_properties: Option<Additional>,
    pub(crate) items: Option<Schema>,
    pub(crate) required: Vec<String>,
    pub(crate) r#enum: Vec<Value>,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<f64>,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Schema>,
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub(crate) int_or_string: bool,
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub(crate) preserve_unknown_fields: bool,
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub(crate) embedded_resource: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    pub(crate) list_type: Option<String>,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    pub(crate) map_type: Option<String>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    pub(crate) patch_strategy: Option<String>,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    pub(crate) patch_merge_key: Option<String>,
    #[serde(rename = "x-kubernetes-validations")]
    pub(crate) validations: Vec<Value>,
}

/// The JSON type that a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    #[serde(other)]
    Unknown,
}

/// What members are allowed beside the named ones.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Additional {
    /// All (`true`) or none.
    Any(bool),
    /// Those that fit a schema.
    Of(Schema),
}

impl From<Keywords> for Node {
    fn from(mut words: Keywords) -> Node {
        let mut reference = words.reference.take();
        if let ([only], None) = (words.all_of.as_slice(), &reference) {
            reference = only.reference().map(str::to_owned);
            if reference.is_some() {
                words.all_of.clear();
            }
        }
        let (is_associative, map_keys) = identity(&mut words);
        let reference = reference.map(|reference| reference.rsplit('/').next().unwrap_or_default().to_owned());
        Node { words, reference, map_keys, is_associative, raw: None, pattern: OnceLock::new() }
    }
}

/// How items are told apart: by the list type, else, as structured merge does for built-in kinds, by the patch strategy.
fn identity(words: &mut Keywords) -> (bool, Vec<String>) {
    match (words.list_type.as_deref(), words.patch_strategy.as_deref()) {
        (Some("map"), _) => (true, std::mem::take(&mut words.list_map_keys)),
        (Some("set"), _) => (true, Vec::new()),
        (Some(_), _) => (false, Vec::new()),
        (None, Some("merge" | "merge,retainKeys")) => (true, words.patch_merge_key.iter().cloned().collect()),
        (None, _) => (false, Vec::new()),
    }
}

impl Node {
    /// The pattern, compiled once; `None` where there is none or it is no valid expression.
    pub(crate) fn pattern(&self) -> Option<&Regex> {
        let pattern = self.words.pattern.as_deref()?;
        self.pattern.get_or_init(|| Regex::new(pattern).ok()).as_ref()
    }
}

impl Type {
    /// The name in OpenAPI.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Unknown => "unknown",
        }
    }
}
