//! Kinds of one's own: what is known of them, and their definition for the API.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as api;
use kube::core::schema::{OptionalEnum, OptionalIntOrString, StructuralSchemaRewriter};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{AddNullable, Transform, transform_subschemas};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::status::Status;

/// A kind of one's own; `#[derive(Resource)]` on the spec implements it.
pub trait CustomResource:
    kube::Resource<DynamicType = (), Scope: 'static> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// What is declared.
    type Spec: JsonSchema;
    /// What the author reports.
    type Status: JsonSchema + Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What the API needs to know about the kind.
    fn facts() -> Facts;

    /// What is declared.
    fn spec(&self) -> &Self::Spec;

    /// What was reported.
    fn status(&self) -> Option<&Status<Self::Status>>;
}

/// What the API needs to know about a kind besides its schema.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The name in URLs.
    pub plural: &'static str,
    /// The name of one.
    pub singular: &'static str,
    /// Short names for `kubectl get`.
    pub short_names: &'static [&'static str],
    /// Groups of kinds for `kubectl get`, such as `all`.
    pub categories: &'static [&'static str],
    /// A sentence about the kind.
    pub description: &'static str,
    /// The columns of `kubectl get`, besides name and age.
    pub columns: &'static [Column],
    /// Where `kubectl scale` reads and writes.
    pub scale: Option<Scale>,
    /// Rules on the spec.
    pub rules: &'static [Rule],
}

/// A column of `kubectl get`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The title.
    pub name: &'static str,
    /// Where the value is.
    pub path: &'static str,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: &'static str,
    /// Above zero only with `-o wide`.
    pub priority: i32,
}

/// The paths of the scale subresource.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The wanted number.
    pub spec: &'static str,
    /// The present number.
    pub status: &'static str,
    /// The label selector as text, for autoscalers.
    pub selector: Option<&'static str>,
}

/// A rule in the Common Expression Language on the spec.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What must hold.
    pub cel: &'static str,
    /// What to say if it does not.
    pub message: &'static str,
}

/// The definition of the kind `R`, to be applied before its first object.
pub fn definition<R: CustomResource>() -> api::CustomResourceDefinition {
    let facts = R::facts();
    let is_namespaced = std::any::TypeId::of::<R::Scope>() == std::any::TypeId::of::<NamespaceResourceScope>();
    let mut definition = api::CustomResourceDefinition::default();
    definition.metadata.name = Some(format!("{}.{}", facts.plural, facts.group));
    definition.spec = api::CustomResourceDefinitionSpec {
        group: facts.group.into(),
        scope: if is_namespaced { "Namespaced" } else { "Cluster" }.into(),
        names: api::CustomResourceDefinitionNames {
            kind: facts.kind.into(),
            plural: facts.plural.into(),
            singular: Some(facts.singular.into()),
            short_names: some_words(facts.short_names),
            categories: some_words(facts.categories),
            list_kind: Some(format!("{}List", facts.kind)),
        },
        versions: vec![version::<R>(&facts)],
        ..api::CustomResourceDefinitionSpec::default()
    };
    definition
}

fn version<R: CustomResource>(facts: &Facts) -> api::CustomResourceDefinitionVersion {
    api::CustomResourceDefinitionVersion {
        name: facts.version.into(),
        served: true,
        storage: true,
        schema: Some(api::CustomResourceValidation { open_api_v3_schema: Some(schema::<R>(facts)) }),
        subresources: Some(api::CustomResourceSubresources {
            status: Some(api::CustomResourceSubresourceStatus(json!({}))),
            scale: facts.scale.map(|scale| api::CustomResourceSubresourceScale {
                spec_replicas_path: scale.spec.into(),
                status_replicas_path: scale.status.into(),
                label_selector_path: scale.selector.map(Into::into),
            }),
        }),
        additional_printer_columns: Some(columns(facts.columns)),
        ..api::CustomResourceDefinitionVersion::default()
    }
}

fn columns(own: &[Column]) -> Vec<api::CustomResourceColumnDefinition> {
    let age = Column { name: "Age", path: ".metadata.creationTimestamp", type_: "date", priority: 0 };
    let definition = |column: &Column| api::CustomResourceColumnDefinition {
        name: column.name.into(),
        json_path: column.path.into(),
        type_: column.type_.into(),
        priority: (column.priority != 0).then_some(column.priority),
        ..api::CustomResourceColumnDefinition::default()
    };
    own.iter().chain([&age]).map(definition).collect()
}

fn schema<R: CustomResource>(facts: &Facts) -> api::JSONSchemaProps {
    let mut spec = part::<R::Spec>();
    spec["description"] = "What is wanted.".into();
    if !facts.rules.is_empty() {
        let rules = facts.rules.iter().map(|rule| json!({"rule": rule.cel, "message": rule.message})).collect();
        spec["x-kubernetes-validations"] = Value::Array(rules);
    }
    let schema = json!({
        "type": "object",
        "description": facts.description,
        "required": ["spec"],
        "properties": {"spec": spec, "status": part::<Status<R::Status>>()},
    });
    serde_json::from_value(schema).expect("a structural schema of a Rust type is one of the API")
}

/// The structural schema of a type, nothing referred to.
fn part<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(AddNullable::default())
        .with_transform(StructuralSchemaRewriter)
        .with_transform(OptionalEnum)
        .with_transform(OptionalIntOrString)
        .with_transform(KnownFormats);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Replaces the formats of unsigned numbers, which the API does not know, by signed ones that hold them.
#[derive(Clone, Debug)]
struct KnownFormats;

impl Transform for KnownFormats {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        let known = match schema.get("format").and_then(Value::as_str) {
            Some("uint8" | "uint16" | "int8" | "int16") => Some("int32"),
            Some("uint32" | "uint64" | "uint" | "int") => Some("int64"),
            _ => None,
        };
        if let Some(known) = known {
            schema.insert("format".into(), known.into());
        }
        transform_subschemas(self, schema);
    }
}

fn some_words(words: &[&str]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.iter().map(|word| (*word).to_owned()).collect())
}
