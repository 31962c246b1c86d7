//! Kinds of one's own: what is known of them, and their definition for the API.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as api;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::schema::structural;
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
    /// Rules on the whole object.
    pub rules: &'static [Rule],
    /// Fields for `kubectl get --field-selector`.
    pub selectable: &'static [&'static str],
    /// What to warn clients with who still use this version; may be empty.
    pub deprecated: Option<&'static str>,
    /// Whether clients cannot use this version any more, and it is there only for what was stored.
    pub is_unserved: bool,
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
    /// Such as `int32` or `password`; may be empty.
    pub format: &'static str,
    /// For people; may be empty.
    pub description: &'static str,
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

/// A rule in the Common Expression Language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule {
    /// What must hold.
    pub cel: &'static str,
    /// What to say if it does not.
    pub message: Option<&'static str>,
    /// An expression for what to say.
    pub message_expression: Option<&'static str>,
    /// `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or `FieldValueDuplicate`.
    pub reason: Option<&'static str>,
    /// The field that is to blame, below the one with the rule.
    pub field_path: Option<&'static str>,
    /// Whether `oldSelf` is an optional, so that the rule holds for new objects, too.
    pub optional_old_self: bool,
}

impl Rule {
    /// The rule in a schema.
    pub(crate) fn to_value(self) -> Value {
        let mut rule = Map::from_iter([("rule".to_owned(), self.cel.into())]);
        let texts = [
            ("message", self.message),
            ("messageExpression", self.message_expression),
            ("reason", self.reason),
            ("fieldPath", self.field_path),
        ];
        rule.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))));
        if self.optional_old_self {
            rule.insert("optionalOldSelf".into(), true.into());
        }
        Value::Object(rule)
    }
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
        served: !facts.is_unserved,
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
        selectable_fields: selectable(facts.selectable),
        deprecated: facts.deprecated.map(|_| true),
        deprecation_warning: facts.deprecated.and_then(some_text),
    }
}

fn columns(own: &[Column]) -> Vec<api::CustomResourceColumnDefinition> {
    let age = Column {
        name: "Age",
        path: ".metadata.creationTimestamp",
        type_: "date",
        format: "",
        description: "",
        priority: 0,
    };
    let definition = |column: &Column| api::CustomResourceColumnDefinition {
        name: column.name.into(),
        json_path: column.path.into(),
        type_: column.type_.into(),
        format: some_text(column.format),
        description: some_text(column.description),
        priority: (column.priority != 0).then_some(column.priority),
    };
    own.iter().chain([&age]).map(definition).collect()
}

fn selectable(paths: &[&str]) -> Option<Vec<api::SelectableField>> {
    let field = |path: &&str| api::SelectableField { json_path: (*path).to_owned() };
    (!paths.is_empty()).then(|| paths.iter().map(field).collect())
}

fn schema<R: CustomResource>(facts: &Facts) -> api::JSONSchemaProps {
    let mut spec = structural::<R::Spec>();
    spec["description"] = "What is wanted.".into();
    let mut schema = json!({
        "type": "object",
        "description": facts.description,
        "required": ["spec"],
        "properties": {"spec": spec, "status": structural::<Status<R::Status>>()},
    });
    if !facts.rules.is_empty() {
        schema["x-kubernetes-validations"] = facts.rules.iter().map(|rule| rule.to_value()).collect();
    }
    serde_json::from_value(schema).expect("a structural schema of a Rust type is one of the API")
}

fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn some_words(words: &[&str]) -> Option<Vec<String>> {
    (!words.is_empty()).then(|| words.iter().map(|word| (*word).to_owned()).collect())
}
