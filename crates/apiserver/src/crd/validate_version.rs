//! Which versions of a definition are accepted: schema, columns, scale, selectable fields.

use serde_json::Value;
use windlass_schema::{FieldError, Schema};

use super::definition::{Scale, Version};
use crate::{
    cel::{Fault, Rules},
    jsonpath::JsonPath,
};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_FIELDS_MAX: usize = 8;
const WARNING_CHARACTERS_MAX: usize = 256;

/// What may stand at the root of a schema that has a status of its own.
const ROOT_WORDS: [&str; 24] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-map-type",
    "x-kubernetes-embedded-resource",
];

/// Where the parts of a version are named. What all versions have in common is one thing, told once and outside of them.
pub(super) struct Places {
    version: String,
    schema: Option<String>,
    scale: Option<String>,
    columns: Option<String>,
    selectable: Option<String>,
}

impl Places {
    /// The places of one of these versions, of which `raw` is the JSON.
    pub(super) fn of(raw: &Value, index: usize) -> Places {
        let version = format!("spec.versions[{index}]");
        let place = |part: &str, common: &str, below: &str| {
            let mut parts = raw.as_array().into_iter().flatten().map(|version| version.get(part));
            let first = parts.next();
            match parts.all(|other| Some(other) == first) {
                true => (index == 0).then(|| format!("spec.{common}{below}")),
                false => Some(format!("{version}.{part}{below}")),
            }
        };
        Places {
            schema: place("schema", "validation", ".openAPIV3Schema"),
            scale: place("subresources", "subresources", ".scale"),
            columns: place("additionalPrinterColumns", "additionalPrinterColumns", ""),
            selectable: place("selectableFields", "selectableFields", ""),
            version,
        }
    }
}

/// What is wrong with a version; `old` is what it was before an update.
pub(super) fn run(version: &Version, old: Option<&Version>, places: &Places) -> Vec<FieldError> {
    let mut errors = deprecation(version, &places.version);
    match (raw_schema(version), &places.schema) {
        (None, _) => {
            let path = format!("{}.schema.openAPIV3Schema", places.version);
            errors.push(FieldError::required(path, ""));
        }
        // Hundreds of rules are not compiled again for a new label.
        (Some(raw), Some(place)) if old.and_then(raw_schema) != Some(raw) => errors.extend(schema(version, raw, place)),
        (Some(_), _) => {}
    }
    let scale = version.subresources.as_ref().and_then(|parts| parts.scale.as_ref());
    if let (Some(scale), Some(place)) = (scale, &places.scale) {
        errors.extend(scale_paths(scale, place));
    }
    if let Some(place) = &places.columns {
        let columns = version.additional_printer_columns.iter().enumerate();
        errors.extend(columns.flat_map(|(index, column)| printer_column(column, &format!("{place}[{index}]"))));
    }
    if let Some(place) = &places.selectable {
        errors.extend(selectable_fields(version, place));
    }
    errors
}

fn deprecation(version: &Version, path: &str) -> Vec<FieldError> {
    let Some(warning) = &version.deprecation_warning else { return Vec::new() };
    let problem = match warning {
        _ if !version.deprecated => "can only be set for deprecated versions",
        text if text.is_empty() => "must not be an empty string",
        text if text.len() > WARNING_CHARACTERS_MAX => "must be <= 256 characters long",
        text if text.chars().any(char::is_control) => "must only contain printable UTF-8 characters",
        _ => return Vec::new(),
    };
    vec![FieldError::invalid(format!("{path}.deprecationWarning"), warning.clone(), problem)]
}

fn raw_schema(version: &Version) -> Option<&Value> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn schema(version: &Version, raw: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = root(version, raw, path);
    match Schema::from_json_schema_props(raw) {
        Ok(_) => {}
        Err(found) => {
            errors.extend(found.into_iter().map(|error| FieldError { path: join(path, &error.path), ..error }))
        }
    }
    // Rules over a schema that is wrong would only be reported as wrong, too.
    if errors.is_empty() {
        let found = Rules::compile(raw).map_or_else(|errors| errors, |rules| rules.too_expensive());
        errors.extend(found.into_iter().map(|error| {
            let path = join(path, &error.path);
            match error.fault {
                Fault::Missing => FieldError::required(path, error.detail),
                Fault::Invalid(value) => FieldError::invalid(path, value, error.detail),
                Fault::Forbidden => FieldError::forbidden(path, error.detail),
            }
        }));
    }
    errors
}

fn root(version: &Version, raw: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if raw.get("nullable") == Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    if version.subresources.as_ref().is_none_or(|parts| parts.status.is_none()) {
        return errors;
    }
    let kind = raw.get("type").and_then(Value::as_str).unwrap_or_default();
    if !kind.is_empty() && kind != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{path}.type"), kind, detail));
    }
    let foreign = raw.as_object().into_iter().flatten().any(|(word, _)| !ROOT_WORDS.contains(&word.as_str()));
    if foreign {
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            ROOT_WORDS.join(" ")
        );
        errors.push(FieldError::invalid(path, raw.clone(), detail));
    }
    errors
}

fn scale_paths(scale: &Scale, path: &str) -> Vec<FieldError> {
    let check = |member: &str, given: &str, roots: &[&str], detail: &str| {
        let at = format!("{path}.{member}");
        if given.is_empty() {
            return Some(FieldError::required(at, ""));
        }
        if !given.starts_with('.') {
            return Some(FieldError::invalid(at, given, "must be a simple json path starting with ."));
        }
        let simple = JsonPath::parse(given).ok().is_some_and(|path| path.fields().is_some());
        let fits = simple && roots.iter().any(|root| given.starts_with(root));
        (!fits).then(|| FieldError::invalid(at, given, detail))
    };
    let selector = scale.label_selector_path.as_deref().filter(|path| !path.is_empty());
    let errors = [
        check("specReplicasPath", &scale.spec_replicas_path, &[".spec."], "should be a json path under .spec"),
        check("statusReplicasPath", &scale.status_replicas_path, &[".status."], "should be a json path under .status"),
        selector.and_then(|path| {
            check(
                "labelSelectorPath",
                path,
                &[".spec.", ".status."],
                "should be a json path under either .spec or .status",
            )
        }),
    ];
    errors.into_iter().flatten().collect()
}

fn printer_column(raw: &Value, path: &str) -> Vec<FieldError> {
    let text = |member: &str| raw.get(member).and_then(Value::as_str).unwrap_or_default();
    let mut errors = Vec::new();
    if text("name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    match text("type") {
        "" => errors.push(FieldError::required(format!("{path}.type"), types)),
        kind if !COLUMN_TYPES.contains(&kind) => errors.push(FieldError::invalid(format!("{path}.type"), kind, types)),
        _ => {}
    }
    let format = text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{path}.format"), format, detail));
    }
    let at = format!("{path}.jsonPath");
    match text("jsonPath") {
        "" => errors.push(FieldError::required(at, "")),
        given if !given.starts_with('.') => {
            errors.push(FieldError::invalid(at, given, "must be a simple json path starting with ."));
        }
        given => {
            // Upstream finds out when it prints; a clear error now is worth more than an empty column.
            errors.extend(JsonPath::parse(given).err().map(|error| FieldError::invalid(at, given, error.to_string())));
        }
    }
    errors
}

fn selectable_fields(version: &Version, path: &str) -> Vec<FieldError> {
    let fields = &version.selectable_fields;
    let Some(raw) = raw_schema(version) else { return Vec::new() };
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let given = field.json_path.as_str();
        if given.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if seen.contains(&given) {
            errors.push(FieldError::duplicate(at, given));
        } else {
            errors.extend(selectable_problem(given, raw).map(|problem| FieldError::invalid(at, given, problem)));
            seen.push(given);
        }
    }
    if seen.len() > SELECTABLE_FIELDS_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_FIELDS_MAX as u64));
    }
    errors
}

fn selectable_problem(path: &str, schema: &Value) -> Option<String> {
    let parsed = match JsonPath::parse(path) {
        Ok(parsed) => parsed,
        Err(error) => return Some(format!("is an invalid path: {error}")),
    };
    let Some(names) = parsed.fields().filter(|_| !path.contains('[')) else {
        return Some("is an invalid path: array notation is not allowed".to_owned());
    };
    if names.first() == Some(&"metadata") {
        return Some("must not point to fields in metadata".to_owned());
    }
    let found = names.iter().try_fold(schema, |schema, name| schema.get("properties")?.get(name));
    match found.map(|schema| schema.get("type").and_then(Value::as_str)) {
        None => Some("is an invalid path: does not refer to a valid field".to_owned()),
        Some(Some("string" | "boolean" | "integer")) => None,
        Some(_) => Some(
            "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
                .to_owned(),
        ),
    }
}

fn join(path: &str, below: &str) -> String {
    match below {
        "" => path.to_owned(),
        below if below.starts_with('[') => format!("{path}{below}"),
        below => format!("{path}.{below}"),
    }
}
