//! The scale subresource: how many replicas there are and should be.

use http::{Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use super::{
    get, ownership,
    patch::{self, Patch},
    scope::Scope,
    update::{self, Changed},
};
use crate::{
    ApiError, Subject,
    codec::{Body, MediaType, document, read, respond},
    object::Object,
    request::Verb,
    strategy::Part,
};

const SCALE: Subject<'_> = Subject { group: "autoscaling", resource: "Scale" };

/// Answers a request on `scale`.
pub(crate) async fn handle(scope: &Scope, request: Request<Body>) -> Result<Response<Body>, ApiError> {
    if scope.request.verb == Verb::Get {
        let scale = scale_of(scope, &get::live(scope, &scope.request.name).await?)?;
        return answer(scope, &scale);
    }
    let body = read(request.into_body()).await?;
    let wish = match scope.request.verb {
        Verb::Patch if MediaType::of(&scope.headers) == Some(MediaType::ApplyYaml) => {
            Wish::Apply(configuration(scope, patch::yaml(&body)?.value)?)
        }
        Verb::Patch => Wish::Patch(patch::parse(scope, &body)?),
        _ => Wish::Replace(document(&scope.headers, &body)?.value),
    };
    let transform = |live: Option<&Value>| {
        let live = live.ok_or_else(|| ApiError::not_found(scope.subject(), &scope.request.name))?;
        let current = scale_of(scope, live)?;
        let wanted = match &wish {
            Wish::Apply(config) => {
                let mut object = ownership::apply(scope, Some(live), config)?;
                if object.resource_version().is_empty() {
                    object.set_meta("resourceVersion", live.resource_version());
                }
                return Ok(Changed { object, owned: true });
            }
            Wish::Replace(scale) => scale.clone(),
            Wish::Patch(patch) => patch_scale(patch, &current)?,
        };
        let mut object = live.clone();
        write_replicas(scope, &mut object, &wanted)?;
        // Only what the client says about the version counts.
        object.set_meta("resourceVersion", wanted.resource_version());
        if wanted.resource_version().is_empty() {
            object.set_meta("resourceVersion", live.resource_version());
        }
        Ok(Changed { object, owned: false })
    };
    let updated = update::update(scope, Part::Object, false, &transform).await?;
    answer(scope, &scale_of(scope, &updated.written.object)?)
}

enum Wish {
    Replace(Value),
    Patch(Patch),
    /// A configuration of the object that holds the replicas.
    Apply(Value),
}

/// What an applied scale says about the object behind it.
fn configuration(scope: &Scope, scale: Value) -> Result<Value, ApiError> {
    let text = |field: &str| scale.get(field).and_then(Value::as_str).unwrap_or_default();
    if (text("apiVersion"), text("kind")) != ("autoscaling/v1", "Scale") {
        let found = format!("{}, Kind={}", text("apiVersion"), text("kind"));
        return Err(ApiError::bad_request(format!("{found} cannot be handled as autoscaling/v1, Kind=Scale")));
    }
    let mut config = json!({
        "apiVersion": scope.kind.api_version(),
        "kind": scope.kind.kind().kind,
        "metadata": { "name": scope.request.name },
        "spec": {},
    });
    for (field, value) in [("namespace", scope.namespace()), ("resourceVersion", scale.resource_version())] {
        if !value.is_empty() {
            config.set_meta(field, value);
        }
    }
    write_replicas(scope, &mut config, &scale)?;
    Ok(config)
}

fn patch_scale(patch: &Patch, current: &Value) -> Result<Value, ApiError> {
    let mut wanted = current.clone();
    match patch {
        Patch::Json(operations) => {
            windlass_merge::json_patch(&mut wanted, operations).map_err(patch::patch_error)?;
        }
        // A scale has no lists, so that all other patches merge alike.
        Patch::Merge(changes) | Patch::Strategic(changes) | Patch::Apply(changes) => {
            windlass_merge::merge_patch(&mut wanted, changes);
        }
    }
    Ok(wanted)
}

fn answer(scope: &Scope, scale: &Value) -> Result<Response<Body>, ApiError> {
    let rendered = super::render::object(scope, scale)?;
    Ok(respond(StatusCode::OK, &rendered, &scope.accept))
}

/// The scale of an object.
pub(crate) fn scale_of(scope: &Scope, object: &Value) -> Result<Value, ApiError> {
    if let Some(custom) = scope.kind.custom() {
        let paths = custom.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        return paths.read(object).ok_or_else(|| {
            ApiError::internal(format!("the spec replicas field {:?} does not exist", paths.spec_replicas().join(".")))
        });
    }
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let metadata: Map<String, Value> =
        kept.into_iter().filter_map(|field| Some((field.to_owned(), object.metadata()?.get(field)?.clone()))).collect();
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": { "replicas": number("/status/replicas") },
    });
    if number("/spec/replicas") != 0 {
        scale["spec"]["replicas"] = number("/spec/replicas").into();
    }
    let selector = selector_text(object.pointer("/spec/selector").unwrap_or(&Value::Null));
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    Ok(scale)
}

/// Writes the replicas of a scale into the object.
pub(crate) fn write_replicas(scope: &Scope, object: &mut Value, scale: &Value) -> Result<(), ApiError> {
    let refused = |error| ApiError::invalid_fields(SCALE, &scope.request.name, vec![error]);
    if let Some(custom) = scope.kind.custom() {
        let paths = custom.scale.as_ref().ok_or_else(ApiError::no_such_path)?;
        return paths.write(object, scale).map_err(refused);
    }
    let wanted = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
    let Some(number) = wanted.as_i64().filter(|number| i32::try_from(*number).is_ok()) else {
        return Err(refused(FieldError::invalid("spec.replicas", wanted, "must be an integer")));
    };
    if number < 0 {
        return Err(refused(FieldError::invalid("spec.replicas", number, "must be greater than or equal to 0")));
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.insert("replicas".to_owned(), number.into());
    }
    Ok(())
}

/// A selector as text: of labels, or of a replication controller's plain map.
fn selector_text(selector: &Value) -> String {
    let plain = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let labels = if plain { selector.as_object() } else { selector.get("matchLabels").and_then(Value::as_object) };
    let equal =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let sets = expressions.map(|expression| {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        match text("operator") {
            "In" => format!("{} in ({})", text("key"), values.join(",")),
            "NotIn" => format!("{} notin ({})", text("key"), values.join(",")),
            "DoesNotExist" => format!("!{}", text("key")),
            _ => text("key").to_owned(),
        }
    });
    equal.chain(sets).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_as_text() {
        let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d", "e"]}, {"key": "f", "operator": "DoesNotExist"}]});
        assert_eq!(selector_text(&selector), "a=b,c in (d,e),!f");
        assert_eq!(selector_text(&json!({"app": "web"})), "app=web");
        assert_eq!(selector_text(&Value::Null), "");
    }
}
