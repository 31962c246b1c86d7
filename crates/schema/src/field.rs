//! An error at a field of an object, worded as Kubernetes words it.

use std::fmt;

use serde_json::Value;

/// What is wrong with the value of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Where: `spec.containers[0].name`; empty for the object itself.
    pub path: String,
    /// The class of the error.
    pub kind: ErrorKind,
    /// The offending value, where the message shows it.
    pub value: Option<Value>,
    /// What is expected instead.
    pub detail: String,
}

/// The classes of errors that a field can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A value is missing.
    Required,
    /// A value has the right type but is not allowed.
    Invalid,
    /// A value has the wrong type.
    TypeInvalid,
    /// A value is not one of a known few.
    NotSupported,
    /// A reference leads nowhere.
    NotFound,
    /// A value occurs twice where it must be unique.
    Duplicate,
    /// A value is fine by itself, but not here and now.
    Forbidden,
    /// A string is too long.
    TooLong,
    /// A list or a map has too many members.
    TooMany,
    /// The check itself failed.
    Internal,
}

impl ErrorKind {
    /// The name of the class in `status.details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::Internal => "InternalError",
        }
    }

    fn label(self) -> &'static str {
        match self {
            ErrorKind::Required => "Required value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::NotFound => "Not found",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::Internal => "Internal error",
        }
    }
}

impl FieldError {
    fn new(kind: ErrorKind, path: impl Into<String>, value: Option<Value>, detail: impl Into<String>) -> FieldError {
        FieldError { path: path.into(), kind, value, detail: detail.into() }
    }

    /// A value is missing.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::Required, path, None, detail)
    }

    /// A value is not allowed.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::Invalid, path, Some(value.into()), detail)
    }

    /// A value has the wrong type.
    pub fn type_invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail)
    }

    /// A value is not one of `supported`.
    pub fn not_supported<S: AsRef<str>>(
        path: impl Into<String>,
        value: impl Into<Value>,
        supported: &[S],
    ) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|value| quote(value.as_ref())).collect();
        let detail = if quoted.is_empty() { String::new() } else { format!("supported values: {}", quoted.join(", ")) };
        FieldError::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    /// A value occurs twice.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError::new(ErrorKind::Duplicate, path, Some(value.into()), "")
    }

    /// A reference leads nowhere.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError::new(ErrorKind::NotFound, path, Some(value.into()), "")
    }

    /// A value is not allowed here and now.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(ErrorKind::Forbidden, path, None, detail)
    }

    /// A string is longer than `max` bytes.
    pub fn too_long(path: impl Into<String>, max: u64) -> FieldError {
        let unit = if max == 1 { "byte" } else { "bytes" };
        FieldError::new(ErrorKind::TooLong, path, None, format!("may not be more than {max} {unit}"))
    }

    /// A list or map has `actual` members where `max` are allowed.
    pub fn too_many(path: impl Into<String>, actual: usize, max: u64) -> FieldError {
        let unit = if max == 1 { "item" } else { "items" };
        FieldError::new(ErrorKind::TooMany, path, Some(actual.into()), format!("must have at most {max} {unit}"))
    }

    /// The message without the path, as `status.details.causes[].message` carries it.
    pub fn body(&self) -> String {
        let mut body = self.kind.label().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            match value {
                Value::String(text) => body.push_str(&quote(text)),
                other => body.push_str(&other.to_string()),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "<nil>" } else { &self.path };
        write!(formatter, "{path}: {}", self.body())
    }
}

/// Quotes a text as Go's `%q` does for printable text.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// The path of the member `name` of the value at `path`.
pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The path of the item `index` of the list at `path`.
pub(crate) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// The path of the value at `key` of the map at `path`.
pub(crate) fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_as_upstream_writes_them() {
        let check = |error: FieldError, expect: &str| assert_eq!(error.to_string(), expect);
        check(FieldError::required("spec.a", ""), "spec.a: Required value");
        check(FieldError::invalid("spec.a", 3, "too big"), "spec.a: Invalid value: 3: too big");
        check(
            FieldError::not_supported("spec.a", "x", &["a", "b"]),
            r#"spec.a: Unsupported value: "x": supported values: "a", "b""#,
        );
        check(FieldError::duplicate("a[1]", "x"), r#"a[1]: Duplicate value: "x""#);
        check(FieldError::too_long("a", 63), "a: Too long: may not be more than 63 bytes");
        check(FieldError::too_many("a", 3, 1), "a: Too many: 3: must have at most 1 item");
    }
}
