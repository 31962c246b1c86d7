//! Objects in the form that the client wants: as they are, as metadata alone, as a table.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::scope::Scope;
use crate::{
    ApiError,
    codec::Transform,
    table::{IncludeObject, TableOptions, TableVersion, Tabler},
};

/// One object.
pub(crate) fn object<'a>(scope: &Scope, object: &'a Value) -> Result<Cow<'a, Value>, ApiError> {
    match &scope.accept.transform {
        Transform::None => Ok(Cow::Borrowed(object)),
        Transform::Metadata(version) => Ok(Cow::Owned(metadata(object, version))),
        Transform::Table(version) => {
            let metadata = object.get("metadata").unwrap_or(&Value::Null);
            let table = tabler(scope).table(std::slice::from_ref(object), metadata, options(scope, version)?);
            Ok(Cow::Owned(table))
        }
        Transform::MetadataList(_) => Err(ApiError::not_acceptable(&["application/json"])),
    }
}

/// A list of objects; `list_metadata` is that of the list.
pub(crate) fn list(scope: &Scope, items: Vec<Value>, list_metadata: Value) -> Result<Value, ApiError> {
    match &scope.accept.transform {
        Transform::None => {
            let items = items.into_iter().map(|item| bare(scope, item)).collect();
            let metadata = whole(scope, list_metadata);
            Ok(as_list(&scope.kind.list_kind, &scope.kind.api_version(), metadata, items))
        }
        Transform::Metadata(_) => Err(ApiError::not_acceptable_form(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            go_list_type(scope)
        ))),
        Transform::MetadataList(version) => {
            let items = items.iter().map(|item| metadata(item, version)).collect();
            Ok(as_list("PartialObjectMetadataList", &format!("meta.k8s.io/{version}"), list_metadata, items))
        }
        Transform::Table(version) => Ok(tabler(scope).table(&items, &list_metadata, options(scope, version)?)),
    }
}

/// The Go type of a list, by which errors name it.
fn go_list_type(scope: &Scope) -> String {
    if !scope.kind.is_builtin() {
        return "*unstructured.UnstructuredList".to_owned();
    }
    let package = match scope.kind.group.as_str() {
        "" | "events.k8s.io" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("*{package}.{}", scope.kind.list_kind)
}

/// The metadata of a list of whole objects: lists of custom ones say that there is no next page.
pub(super) fn whole(scope: &Scope, mut metadata: Value) -> Value {
    if !scope.kind.is_builtin() && metadata["continue"].is_null() {
        metadata["continue"] = "".into();
    }
    metadata
}

/// The object of a watch event; only the first table of a stream has headings.
pub(crate) fn event(scope: &Scope, object: Value, first: bool) -> Result<Value, ApiError> {
    match &scope.accept.transform {
        Transform::None => Ok(object),
        Transform::Metadata(version) | Transform::MetadataList(version) => Ok(metadata(&object, version)),
        Transform::Table(version) => {
            let options = options(scope, version)?;
            let objects = std::slice::from_ref(&object);
            let own = object.get("metadata").unwrap_or(&Value::Null);
            Ok(if first { tabler(scope).table(objects, own, options) } else { tabler(scope).rows(objects, options) })
        }
    }
}

fn tabler(scope: &Scope) -> Tabler<'_> {
    match (scope.request.subresource.as_str(), scope.kind.custom()) {
        ("scale", _) => Tabler::builtin("autoscaling", "scale"),
        (_, Some(custom)) => Tabler::custom(&custom.columns),
        (_, None) => Tabler::builtin(&scope.kind.group, &scope.kind.plural),
    }
}

fn options(scope: &Scope, version: &str) -> Result<TableOptions, ApiError> {
    let wanted = scope.query.get("includeObject").unwrap_or_default();
    let include = IncludeObject::parse(wanted)
        .ok_or_else(|| ApiError::bad_request(format!("unrecognized includeObject value {wanted:?}")))?;
    let version = if version == "v1beta1" { TableVersion::V1beta1 } else { TableVersion::V1 };
    Ok(TableOptions { include, version, now: scope.api.clock().now() })
}

fn metadata(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata").unwrap_or(&Value::Null),
    })
}

/// Items of built-in lists do not repeat their kind.
fn bare(scope: &Scope, mut item: Value) -> Value {
    if let Some(members) = item.as_object_mut().filter(|_| scope.kind.is_builtin()) {
        members.remove("apiVersion");
        members.remove("kind");
    }
    item
}

fn as_list(kind: &str, api_version: &str, metadata: Value, items: Vec<Value>) -> Value {
    let mut list = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata });
    list["items"] = Value::Array(items);
    list
}
