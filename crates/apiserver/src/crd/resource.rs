//! The objects of custom kinds: pruning, defaults, validation, versions.

use serde_json::Value;
use windlass_schema::{ErrorKind, FieldError};

use super::{conversion::convert, embedded, kind::CustomKind};
use crate::{
    ApiError,
    cel::{Violation, ViolationKind},
    registry::Served,
    webhook::Webhooks,
};

/// What stands in for rules that were not run.
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors \
    to complete validation";

/// What checking an object found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// What makes it invalid.
    pub(crate) errors: Vec<FieldError>,
    /// What the client should know all the same.
    pub(crate) warnings: Vec<String>,
}

/// Drops fields that the schema does not name and fills in defaults; gives the paths of what was dropped.
pub(crate) fn complete(kind: &Served, object: &mut Value) -> Vec<String> {
    let dropped = kind.schema.prune(object);
    kind.schema.default(object);
    dropped
}

/// Checks a new object, or a changed one against what it was.
pub(crate) fn validate(kind: &Served, custom: &CustomKind, object: &Value, old: Option<&Value>) -> Checked {
    let mut errors = type_errors(kind, object);
    if !errors.is_empty() {
        return Checked { errors, warnings: Vec::new() };
    }
    errors.extend(kind.schema.validate(object, old, ""));
    errors.extend(custom.scale.iter().flat_map(|scale| scale.validate(object)));
    errors.extend(embedded::validate(&kind.schema, object, ""));
    with_rules(custom, object, old, errors)
}

/// Checks the status of a changed object; the rest of it is as it was.
pub(crate) fn validate_status(kind: &Served, custom: &CustomKind, object: &Value, old: &Value) -> Checked {
    let mut errors = Vec::new();
    if let (Some(status), Some(schema)) = (object.get("status"), kind.schema.member("status")) {
        errors.extend(schema.validate(status, old.get("status"), "status"));
    }
    errors.extend(custom.scale.iter().flat_map(|scale| scale.validate(object)));
    with_rules(custom, object, Some(old), errors)
}

/// Stored objects in the version of `kind`.
///
/// # Errors
/// Those of a webhook that converts.
pub(crate) async fn from_storage(
    webhooks: &Webhooks,
    kind: &Served,
    custom: &CustomKind,
    objects: Vec<Value>,
) -> Result<Vec<Value>, ApiError> {
    let mut objects = convert(webhooks, custom, objects, &kind.api_version()).await?;
    objects.iter_mut().for_each(|object| drop(complete(kind, object)));
    Ok(objects)
}

/// An object in the version that is stored.
///
/// # Errors
/// Those of a webhook that converts.
pub(crate) async fn to_storage(
    webhooks: &Webhooks,
    kind: &Served,
    custom: &CustomKind,
    object: Value,
) -> Result<Value, ApiError> {
    let mut objects = convert(webhooks, custom, vec![object], &storage_version(kind, custom)).await?;
    Ok(objects.pop().unwrap_or_default())
}

/// The `apiVersion` that objects of a custom kind are stored in.
pub(crate) fn storage_version(kind: &Served, custom: &CustomKind) -> String {
    format!("{}/{}", kind.group, custom.storage_version)
}

fn type_errors(kind: &Served, object: &Value) -> Vec<FieldError> {
    let check = |member: &str, wanted: String| {
        let found = object.get(member).and_then(Value::as_str).unwrap_or_default();
        (found != wanted).then(|| FieldError::invalid(member, found, format!("must be {wanted}")))
    };
    [check("kind", kind.kind().kind.clone()), check("apiVersion", kind.api_version())].into_iter().flatten().collect()
}

fn with_rules(custom: &CustomKind, object: &Value, old: Option<&Value>, mut errors: Vec<FieldError>) -> Checked {
    let rules = match custom.rules.get() {
        Ok(rules) if rules.is_empty() => return Checked { errors, warnings: Vec::new() },
        Ok(rules) => rules,
        Err(error) => {
            errors.push(FieldError::invalid("", "object", format!("rule compile error: {error}")));
            return Checked { errors, warnings: Vec::new() };
        }
    };
    // Rules rely on types and sizes, so they are not run on what breaks them.
    let blocking = |error: &FieldError| {
        matches!(
            error.kind,
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    };
    if errors.iter().any(blocking) {
        errors.push(FieldError::invalid("", Value::Null, NOT_CHECKED));
        return Checked { errors, warnings: Vec::new() };
    }
    let findings = rules.check(object, old);
    errors.extend(findings.violations.into_iter().map(field_error));
    let warnings = findings.ratcheted.into_iter().map(|violation| field_error(violation).to_string()).collect();
    Checked { errors, warnings }
}

fn field_error(violation: Violation) -> FieldError {
    let kind = match violation.kind {
        ViolationKind::Invalid => ErrorKind::Invalid,
        ViolationKind::Forbidden => ErrorKind::Forbidden,
        ViolationKind::Required => ErrorKind::Required,
        ViolationKind::Duplicate => ErrorKind::Duplicate,
    };
    let value = violation.value.filter(|_| !matches!(kind, ErrorKind::Forbidden | ErrorKind::Required));
    FieldError { path: violation.path, kind, value, detail: violation.detail }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::{definition::Definition, kind::kinds};

    fn served() -> (Served, std::sync::Arc<CustomKind>) {
        let schema = json!({"type": "object", "properties": {
            "spec": {
                "type": "object", "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 16},
                    "image": {"type": "string", "default": "memcached:1.6"},
                    "max": {"type": "integer"},
                },
                "x-kubernetes-validations": [{"rule": "!has(self.max) || self.size <= self.max", "message": "too many"}],
            },
            "status": {"type": "object", "properties": {"nodes": {"type": "array", "items": {"type": "string"}}}},
        }});
        let version = |name: &str, storage: bool| {
            json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema},
                   "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}})
        };
        let definition = json!({
            "metadata": {"name": "memcacheds.cache.example.com"},
            "spec": {
                "group": "cache.example.com", "scope": "Namespaced",
                "names": {"plural": "memcacheds", "singular": "memcached", "kind": "Memcached", "listKind": "MemcachedList"},
                "versions": [version("v1", false), version("v1alpha1", true)],
            },
        });
        let kinds = kinds(&Definition::read(&definition).unwrap()).unwrap();
        assert_eq!(kinds.iter().map(|kind| kind.version.as_str()).collect::<Vec<_>>(), ["v1", "v1alpha1"]);
        let custom = std::sync::Arc::clone(kinds[0].custom().unwrap());
        (kinds[0].clone(), custom)
    }

    fn object(spec: Value) -> Value {
        json!({"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "m"}, "spec": spec})
    }

    fn check(object: Value, old: Option<Value>, expected: &[&str]) {
        let (kind, custom) = served();
        let checked = validate(&kind, &custom, &object, old.as_ref());
        let texts: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn unknown_fields_go_and_defaults_come() {
        let (kind, _) = served();
        let mut object = object(json!({"size": 3, "unknown": 1}));
        assert_eq!(complete(&kind, &mut object), ["spec.unknown"]);
        assert_eq!(object["spec"], json!({"size": 3, "image": "memcached:1.6"}));
        assert_eq!(object["metadata"]["name"], "m");
    }

    #[test]
    fn errors_read_as_upstream_writes_them() {
        check(object(json!({"size": 3})), None, &[]);
        check(
            object(json!({"size": 0})),
            None,
            &["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
        );
        check(
            object(json!({"size": "three"})),
            None,
            &[
                "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
                ".spec.size: Invalid value: 0: .spec.size accessor error: three is of the type string, expected int64",
                &format!("<nil>: Invalid value: null: {NOT_CHECKED}"),
            ],
        );
        check(
            object(json!({})),
            None,
            &["spec.size: Required value", &format!("<nil>: Invalid value: null: {NOT_CHECKED}")],
        );
        check(object(json!({"size": 3, "max": 2})), None, &["spec: Invalid value: too many"]);
        check(
            json!({"apiVersion": "cache.example.com/v2", "kind": "Other"}),
            None,
            &[
                "kind: Invalid value: \"Other\": must be Memcached",
                "apiVersion: Invalid value: \"cache.example.com/v2\": must be cache.example.com/v1",
            ],
        );
    }

    #[test]
    fn only_the_status_is_checked_where_only_it_changes() {
        let (kind, custom) = served();
        let old = object(json!({"size": 0}));
        let mut new = old.clone();
        new["status"] = json!({"nodes": ["a"]});
        assert!(validate_status(&kind, &custom, &new, &old).errors.is_empty());
        new["status"] = json!({"nodes": [1]});
        assert_eq!(validate_status(&kind, &custom, &new, &old).errors[0].path, "status.nodes[0]");
    }

    #[tokio::test]
    async fn versions_differ_in_name_only() {
        let (kind, custom) = served();
        let webhooks = Webhooks::new(windlass_store::Store::in_memory());
        let stored = to_storage(&webhooks, &kind, &custom, object(json!({"size": 1}))).await.unwrap();
        assert_eq!(stored["apiVersion"], "cache.example.com/v1alpha1");
        let read = from_storage(&webhooks, &kind, &custom, vec![stored]).await.unwrap().remove(0);
        assert_eq!(read["apiVersion"], "cache.example.com/v1");
        assert_eq!(read["spec"]["image"], "memcached:1.6", "defaults are there for readers, too");
    }
}
