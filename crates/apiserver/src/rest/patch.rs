//! Patching objects: JSON patch, merge patch, strategic merge patch, apply.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::Value;
use windlass_merge::{PatchError, json_patch, merge_patch, strategic};
use windlass_schema::FieldError;

use super::{
    conform, input, options, ownership,
    scope::Scope,
    update::{self, Changed, Updated},
};
use crate::{
    ApiError, Subject,
    codec::{Body, Document, MediaType, parse_json, parse_yaml, read},
    object::Object,
    registry::Served,
    strategy::Part,
};

/// The kinds of patches of built-in objects.
const BUILTIN_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
/// Custom objects have no merge keys of the strategic kind.
const CUSTOM_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// A patch that was read.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

/// Answers a PATCH.
pub(crate) async fn patch(scope: &Scope, part: Part, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    let body = read(request.into_body()).await?;
    let patch = parse(scope, &body)?;
    apply(scope, part, &patch).await?.answer(scope)
}

async fn apply(scope: &Scope, part: Part, patch: &Patch) -> Result<Updated, ApiError> {
    let applies = matches!(patch, Patch::Apply(_));
    let allow_create = applies && (part == Part::Object || update::may_create(scope, part));
    let transform = |live: Option<&Value>| patched(scope, patch, live);
    update::update(scope, part, allow_create, &transform).await
}

/// The live object after the patch.
fn patched(scope: &Scope, patch: &Patch, live: Option<&Value>) -> Result<Changed, ApiError> {
    if let Patch::Apply(config) = patch {
        let mut object = ownership::apply(scope, live, config)?;
        update::check_identity(scope, &mut object)?;
        let (mut object, _) =
            conform::read(&scope.kind, object).map_err(|error| ownership::unlike(scope, config, &error))?;
        if object.resource_version().is_empty()
            && let Some(live) = live
        {
            object.set_meta("resourceVersion", live.resource_version());
        }
        return Ok(Changed { object, owned: true });
    }
    let live = live.ok_or_else(|| ApiError::not_found(scope.subject(), &scope.request.name))?;
    let mut object = plain(scope, patch, live)?;
    typed(scope, patch, &mut object)?;
    let mut object = readable(scope, object).map_err(|error| unreadable(&error))?;
    update::check_identity(scope, &mut object)?;
    Ok(Changed { object, owned: false })
}

/// What a patch of a built-in object may say of its kind: a strategic one what it likes, since it is made into the
/// struct at hand; of the others the version must be left, or nobody knows what the fields are.
fn typed(scope: &Scope, patch: &Patch, object: &mut Value) -> Result<(), ApiError> {
    if !scope.kind.is_builtin() {
        return Ok(());
    }
    if matches!(patch, Patch::Strategic(_)) {
        let wrong =
            ["apiVersion", "kind"].into_iter().find(|name| !object[*name].is_string() && !object[*name].is_null());
        if let Some(wrong) = wrong {
            return Err(unreadable(&ApiError::bad_request(format!("{wrong}: cannot convert it to string"))));
        }
        object["apiVersion"] = scope.kind.api_version().into();
        object["kind"] = scope.kind.kind().kind.as_str().into();
    } else if object.get("apiVersion").is_none_or(|version| version.is_null() || version == "") {
        conform::read(&scope.kind, object.clone()).map_err(|error| unreadable(&error))?;
        return Err(update::nameless(scope));
    }
    Ok(())
}

/// The patched object as one of its kind.
fn readable(scope: &Scope, mut object: Value) -> Result<Value, ApiError> {
    conform::check_kind(&scope.kind, &mut object)?;
    let (object, unknown) = conform::read(&scope.kind, object)?;
    input::report(scope, unknown.iter().map(|path| format!("unknown field {path:?}")).collect())?;
    Ok(object)
}

/// An object that cannot be read any more is the fault of the patch.
fn unreadable(error: &ApiError) -> ApiError {
    let why = error.message.split_once(": ").map_or(error.message.as_str(), |(_, why)| why);
    let error = FieldError::invalid("patch", Value::Null, why);
    ApiError::invalid_fields(Subject { group: "", resource: "" }, "", vec![error])
}

/// A value after a patch that knows nothing of owners.
pub(crate) fn plain(scope: &Scope, patch: &Patch, live: &Value) -> Result<Value, ApiError> {
    let mut object = live.clone();
    match patch {
        Patch::Json(patch) => json_patch(&mut object, patch).map_err(patch_error)?,
        Patch::Merge(patch) => merge_patch(&mut object, patch),
        Patch::Strategic(patch) | Patch::Apply(patch) => {
            let shape = Some(&scope.kind.schema);
            object = strategic::apply(&object, patch, shape).map_err(patch_error)?;
        }
    }
    Ok(object)
}

/// Reads the patch in the body.
pub(crate) fn parse(scope: &Scope, body: &Bytes) -> Result<Patch, ApiError> {
    let media_type = check_type(&scope.kind, &scope.headers)?;
    if media_type != MediaType::ApplyYaml && scope.options.force.is_some() {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        options::refuse("PatchOptions", vec![error])?;
    }
    match media_type {
        MediaType::JsonPatch => Ok(Patch::Json(document(scope, parse_json(body))?)),
        MediaType::MergePatch => Ok(Patch::Merge(document(scope, parse_json(body))?)),
        MediaType::ApplyYaml => configuration(scope, body).map(Patch::Apply),
        _ => Ok(Patch::Strategic(document(scope, parse_json(body))?)),
    }
}

/// The kind of a patch, which is looked at before anything else.
pub(crate) fn check_type(kind: &Served, headers: &HeaderMap) -> Result<MediaType, ApiError> {
    let is_builtin = kind.is_builtin();
    let is_patch = |media_type: &MediaType| match media_type {
        MediaType::JsonPatch | MediaType::MergePatch | MediaType::ApplyYaml => true,
        MediaType::StrategicPatch => is_builtin,
        _ => false,
    };
    let unsupported = || ApiError::unsupported_media_type(if is_builtin { &BUILTIN_TYPES } else { &CUSTOM_TYPES });
    MediaType::of(headers).filter(is_patch).ok_or_else(unsupported)
}

fn document(scope: &Scope, read: Result<Document, String>) -> Result<Value, ApiError> {
    let document = read.map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
    input::report(scope, document.duplicates)?;
    Ok(document.value)
}

/// The map in a body of YAML.
pub(crate) fn yaml(body: &Bytes) -> Result<Document, ApiError> {
    let document = parse_yaml(body).map_err(|why| ApiError::bad_request(format!("error decoding YAML: {why}")))?;
    match document.value.is_object() {
        true => Ok(document),
        false => Err(ApiError::bad_request("error decoding YAML: the configuration is not a map")),
    }
}

/// The configuration of an apply. It is not completed: what it does not say it does not own.
fn configuration(scope: &Scope, body: &Bytes) -> Result<Value, ApiError> {
    let document = yaml(body)?;
    // Fields that the kind does not have are left for the merge to refuse, whatever validation the client asks for.
    input::report(scope, document.duplicates)?;
    let config = document.value;
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != scope.kind.api_version() || kind != scope.kind.kind().kind {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
    }
    Ok(config)
}

pub(crate) fn patch_error(error: PatchError) -> ApiError {
    match error {
        PatchError::Malformed(_) => ApiError::bad_request(error.to_string()),
        PatchError::Senseless(why) => ApiError::unsorted(why),
        PatchError::TooManyOperations { .. } => {
            let mut refused = ApiError::too_large(0);
            refused.message = format!("Request entity too large: {error}");
            refused
        }
        PatchError::TestFailed { .. } | PatchError::Inapplicable(_) => {
            let mut refused = ApiError::invalid(Subject { group: "", resource: "" }, "", Vec::new());
            // Kubernetes does not tell more than this; who debugs finds the reason in the log.
            tracing::debug!(%error, "a patch could not be applied");
            refused.message = "the server rejected our request due to an error in our request".to_owned();
            refused
        }
    }
}
