//! Who owns which field of an object: `managedFields`, kept on every write.

use http::header::USER_AGENT;
use serde_json::{Map, Value, json};
use windlass_merge::{
    FieldSet,
    managed::{self, ApplyError, Manager, Write},
};
use windlass_schema::{FieldError, Schema};

use super::{conform, options, scope::Scope};
use crate::{ApiError, Cause, object::Object, registry::Served, strategy};

/// Records the writer of what changes between `live` and `new`.
pub(crate) fn update(scope: &Scope, live: Option<&Value>, new: &mut Value) -> Result<(), ApiError> {
    let name = manager_name(scope);
    let version = scope.kind.api_version();
    let blank = if live.is_none() { blank(&scope.kind) } else { None };
    managed::update(&write(scope, &name, &version), live.or(blank.as_ref()), new).map_err(ApiError::internal)
}

/// Records the writer of an object that is no resource of its own, by its definition and `apiVersion`.
pub(crate) fn update_part(scope: &Scope, (definition, version): (&str, &str), new: &mut Value) -> Result<(), ApiError> {
    let name = manager_name(scope);
    let manager = Manager {
        name: &name,
        api_version: version,
        subresource: &scope.request.subresource,
        time: scope.api.clock().now(),
    };
    let schema = Schema::of_definition(definition);
    let blank = windlass_schema::conform(definition, json!({})).map(|conformed| conformed.object).unwrap_or_default();
    managed::update(&Write::new(manager, Some(&schema)), Some(&blank), new).map_err(ApiError::internal)
}

/// What a new object of a built-in kind is made from: the fields that are always there, which nobody owns as such.
fn blank(kind: &Served) -> Option<Value> {
    kind.is_builtin().then(|| conform::read(kind, Value::Object(Map::new())).ok()).flatten().map(|(blank, _)| blank)
}

/// Merges the configuration of an apply into the live object.
pub(crate) fn apply(scope: &Scope, live: Option<&Value>, config: &Value) -> Result<Value, ApiError> {
    let Some(name) = &scope.options.field_manager else {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(options::refuse("PatchOptions", vec![error])
            .err()
            .unwrap_or_else(|| ApiError::internal("no error")));
    };
    let version = scope.kind.api_version();
    let force = scope.options.force.unwrap_or(false);
    let mut write = write(scope, name, &version);
    if live.is_some() {
        write = write.starting_from(blank(&scope.kind).unwrap_or_default());
    }
    managed::apply(&write, live, config, force).map_err(|error| apply_error(scope, config, error))
}

fn write<'a>(scope: &'a Scope, name: &'a str, version: &'a str) -> Write<'a, Schema> {
    let manager =
        Manager { name, api_version: version, subresource: &scope.request.subresource, time: scope.api.clock().now() };
    let reset = FieldSet::of_names(strategy::reset_fields(&scope.kind, &scope.request.subresource).iter().copied());
    Write::new(manager, Some(&scope.kind.schema)).resetting(reset)
}

/// The name that the client gives itself, or the name of its program.
fn manager_name(scope: &Scope) -> String {
    if let Some(name) = &scope.options.field_manager {
        return name.clone();
    }
    let agent = scope.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match agent.split('/').next().unwrap_or_default() {
        "" => "unknown".to_owned(),
        program => program.chars().take(128).collect(),
    }
}

/// The error for what a configuration makes and its kind cannot hold; Kubernetes takes it for a fault of its own.
pub(crate) fn unlike(scope: &Scope, config: &Value, error: &ApiError) -> ApiError {
    let why = error.message.split_once(": ").map_or(error.message.as_str(), |(_, why)| why);
    let kind = full_kind(scope);
    ApiError::unsorted(format!(
        "failed to convert new object ({}) to proper version: unable to convert unstructured object to {kind}: {why}",
        described(scope, config)
    ))
}

/// A configuration by its place and kind.
fn described(scope: &Scope, config: &Value) -> String {
    format!("{}/{}; {}", config.namespace(), config.name(), full_kind(scope))
}

fn full_kind(scope: &Scope) -> String {
    format!("{}/{}, Kind={}", scope.kind.group, scope.kind.version, scope.kind.kind().kind)
}

fn apply_error(scope: &Scope, config: &Value, error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: conflict.to_string(),
                field: Some(conflict.field()),
            });
            ApiError::apply_conflict(causes.collect(), conflicts.to_string())
        }
        ApplyError::Entries(_) | ApplyError::Convert(_) => ApiError::internal(error),
        ApplyError::Unfit(problems) => {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let problems = match &problems[..] {
                [one] => one.clone(),
                many => format!("errors:\n  {}", many.join("\n  ")),
            };
            ApiError::unsorted(format!(
                "failed to create typed patch object ({}): {problems}",
                described(scope, config)
            ))
        }
        ApplyError::Untracked(problem) => ApiError::unsorted(format!(
            "failed to create manager for existing fields: failed to convert new object ({}) to smd typed: {problem}",
            described(scope, &json!({ "metadata": { "namespace": scope.namespace(), "name": scope.request.name } }))
        )),
        ApplyError::Version { .. } | ApplyError::ManagedFields => ApiError::bad_request(error.to_string()),
    }
}
