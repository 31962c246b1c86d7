//! Objects as their kind has them: known fields only, in canonical form, with defaults.

use serde_json::Value;
use windlass_schema::TypeError;

use crate::{
    ApiError,
    crd::resource::{self, Checked},
    registry::Served,
    strategy::Part,
};

/// Fills in or checks `apiVersion` and `kind`.
pub(crate) fn check_kind(kind: &Served, object: &mut Value) -> Result<(), ApiError> {
    let (api_version, name) = (kind.api_version(), kind.kind().kind.as_str());
    let (found_version, found_kind) = found_name(name, object)?;
    if !kind.is_builtin() && found_kind.is_empty() {
        return Err(ApiError::bad_request("Object 'Kind' is missing in the body of the request"));
    }
    if kind.is_builtin() {
        check_registered((&api_version, name), &found_version, &found_kind)?;
    } else if found_version != api_version {
        // Before anybody looks at the version, the metadata must be one.
        let version = found_version.rsplit('/').next().unwrap_or_default();
        let unreadable = |why: TypeError| {
            ApiError::bad_request(format!("{found_kind} in version {version:?} cannot be handled as a {name}: {why}"))
        };
        read_metadata(&mut object.clone()).map_err(unreadable)?;
    }
    if !found_version.is_empty() || !kind.is_builtin() {
        check_version(kind, object)?;
    }
    // Another kind of a custom object is for its rules to refuse.
    if !kind.is_builtin() {
        return Ok(());
    }
    if !found_kind.is_empty() && found_kind != name {
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {:?} cannot be handled as a {name}: the kind does not match",
            kind.version
        )));
    }
    let Some(members) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the object provided is unrecognized: it is not a map"));
    };
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), name.into());
    Ok(())
}

/// Checks `apiVersion` alone.
fn check_version(kind: &Served, object: &Value) -> Result<(), ApiError> {
    let (found, wanted) = (object.get("apiVersion").and_then(Value::as_str).unwrap_or_default(), kind.api_version());
    if found == wanted {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({wanted})"
    )))
}

/// Fills in or checks `apiVersion` and `kind` of an object that is no resource of its own.
pub(crate) fn check_name((api_version, name): (&str, &str), object: &mut Value) -> Result<(), ApiError> {
    let (found_version, found_kind) = found_name(name, object)?;
    check_registered((api_version, name), &found_version, &found_kind)?;
    let Some(members) = object.as_object_mut() else {
        return Err(ApiError::bad_request("the object provided is unrecognized: it is not a map"));
    };
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), name.into());
    Ok(())
}

/// The `apiVersion` and `kind` of an object that is to be a `name`.
fn found_name(name: &str, object: &Value) -> Result<(String, String), ApiError> {
    for field in ["apiVersion", "kind"] {
        if let Some(wrong) = object.get(field).filter(|value| !value.is_string() && !value.is_null()) {
            let found = windlass_schema::json_type(wrong);
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {name}): couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{field} of type string"
            )));
        }
    }
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((text("apiVersion"), text("kind")))
}

/// Whether there is such a built-in kind at all, be it the one of the path or not.
fn check_registered((api_version, name): (&str, &str), found_version: &str, found_kind: &str) -> Result<(), ApiError> {
    let found_version = if found_version.is_empty() { api_version } else { found_version };
    let found_kind = if found_kind.is_empty() { name } else { found_kind };
    let (group, version) = found_version.split_once('/').unwrap_or(("", found_version));
    let is_expected = found_version == api_version && found_kind == name;
    if is_expected || windlass_schema::builtin().by_kind(group, version, found_kind).is_some() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{found_kind} in version {version:?} cannot be handled as a {name}: no kind {found_kind:?} is registered for version {found_version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )))
}

/// The object in canonical form, and the paths of the fields that its kind does not have.
pub(crate) fn read(kind: &Served, mut object: Value) -> Result<(Value, Vec<String>), ApiError> {
    let unreadable = |why: TypeError| {
        ApiError::bad_request(format!(
            "{name} in version {:?} cannot be handled as a {name}: {why}",
            kind.version,
            name = kind.kind().kind,
        ))
    };
    if kind.custom().is_some() {
        let mut unknown = read_metadata(&mut object).map_err(unreadable)?;
        unknown.extend(kind.schema.prune_body(&mut object));
        return Ok((object, unknown));
    }
    let conformed = windlass_schema::conform(&kind.definition, object).map_err(unreadable)?;
    Ok((conformed.object, conformed.unknown))
}

/// The metadata of custom objects is that of all objects, whatever their schema says.
fn read_metadata(object: &mut Value) -> Result<Vec<String>, TypeError> {
    const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let conformed = windlass_schema::conform(OBJECT_META, metadata.take())?;
    *metadata = conformed.object;
    Ok(conformed.unknown.into_iter().map(|path| format!("metadata.{path}")).collect())
}

/// Adds the defaults of the kind.
pub(crate) fn default(kind: &Served, object: &mut Value) {
    match kind.custom() {
        Some(_) => kind.schema.default(object),
        None => windlass_schema::defaults(kind, object),
    }
}

/// Checks the object against the schema and the rules of its kind.
pub(crate) fn validate(kind: &Served, part: Part, object: &Value, old: Option<&Value>) -> Checked {
    match (kind.custom(), old) {
        (None, _) => Checked::default(),
        (Some(custom), Some(old)) if part == Part::Status => resource::validate_status(kind, custom, object, old),
        (Some(custom), old) => resource::validate(kind, custom, object, old),
    }
}
