//! Custom objects from one version to another: by name only, or by a webhook.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::kind::CustomKind;
use crate::{
    ApiError,
    object::Object,
    webhook::{ClientConfig, Webhooks},
};

/// How long a webhook has for one review.
const TIME_MAX: Duration = Duration::from_secs(30);
/// How many objects a webhook gets at once.
const OBJECTS_MAX: usize = 250;
/// The versions of reviews that the server speaks.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How objects get from one version to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts.
    Webhook(ConversionWebhook),
}

/// A webhook that converts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ConversionWebhook {
    client_config: ClientConfig,
    conversion_review_versions: Vec<String>,
}

/// The objects in `api_version`, in their order.
///
/// # Errors
/// 500, if the webhook does not do what it should.
pub(crate) async fn convert(
    webhooks: &Webhooks,
    custom: &CustomKind,
    mut objects: Vec<Value>,
    api_version: &str,
) -> Result<Vec<Value>, ApiError> {
    let foreign = |object: &Value| object["apiVersion"] != api_version;
    let Conversion::Webhook(webhook) = &custom.conversion else {
        objects
            .iter_mut()
            .filter(|object| foreign(object))
            .for_each(|object| object["apiVersion"] = api_version.into());
        return Ok(objects);
    };
    let due: Vec<usize> = (0..objects.len()).filter(|index| foreign(&objects[*index])).collect();
    for indices in due.chunks(OBJECTS_MAX) {
        let originals = indices.iter().map(|index| objects[*index].take()).collect();
        let converted = webhook.convert(webhooks, originals, api_version).await?;
        for (index, object) in indices.iter().zip(converted) {
            objects[*index] = object;
        }
    }
    Ok(objects)
}

impl ConversionWebhook {
    async fn convert(
        &self,
        webhooks: &Webhooks,
        originals: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let name = kind_name(&originals[0]);
        let failed = |why: String| {
            let message = format!("conversion webhook for {name} {why}");
            ApiError::foreign(StatusCode::INTERNAL_SERVER_ERROR, String::new(), message, None)
        };
        let known = self.conversion_review_versions.iter().find(|version| REVIEW_VERSIONS.contains(&version.as_str()));
        let version = known.ok_or_else(|| failed("failed: no supported conversion review versions".to_owned()))?;
        let uid = uuid::Uuid::new_v4().to_string();
        let review = json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{version}"),
            "request": { "uid": uid, "desiredAPIVersion": api_version, "objects": originals },
        });
        let answer = webhooks.call(&self.client_config, &review, TIME_MAX).await;
        let answer = answer.map_err(|error| failed(format!("failed: {error}")))?;
        let strict = version == "v1";
        let converted = objects_of(answer, &uid, strict).map_err(|why| failed(format!("failed: {why}")))?;
        if converted.len() != originals.len() {
            return Err(failed(format!("returned {} objects, expected {}", converted.len(), originals.len())));
        }
        let checked = originals.iter().zip(converted).enumerate().map(|(index, (original, converted))| {
            checked(original, converted, api_version)
                .map_err(|why| failed(format!("returned invalid object at index {index}: {why}")))
        });
        checked.collect()
    }
}

/// A kind as Kubernetes prints it.
fn kind_name(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// The objects in an answer.
fn objects_of(mut answer: Value, uid: &str, strict: bool) -> Result<Vec<Value>, String> {
    let found = kind_name(&answer);
    let wanted = "apiextensions.k8s.io/v1, Kind=ConversionReview";
    if strict && found != wanted {
        return Err(format!("expected webhook response of {wanted}, got {found}"));
    }
    let response = &mut answer["response"];
    if response.is_null() {
        return Err("no response provided".to_owned());
    }
    let found = response["uid"].as_str().unwrap_or_default();
    if strict && found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let status = response["result"]["status"].as_str().unwrap_or_default();
    if status != "Success" {
        return Err(match response["result"]["message"].as_str().filter(|message| !message.is_empty()) {
            Some(message) => message.to_owned(),
            None => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        Value::Null => Ok(Vec::new()),
        _ => Err("response.convertedObjects is not a list".to_owned()),
    }
}

/// The converted object with the metadata of the original: only labels and annotations may differ.
fn checked(original: &Value, mut converted: Value, api_version: &str) -> Result<Value, String> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&converted, "apiVersion"), text(&converted, "kind"));
    if version != api_version {
        return Err(format!("invalid groupVersion (expected {api_version}, received {version})"));
    }
    if kind != text(original, "kind") {
        return Err(format!("invalid kind (expected {}, received {kind})", text(original, "kind")));
    }
    for (field, words) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (original.meta(field), converted.meta(field));
        if before != after {
            return Err(format!("must have the same {words}: {before} != {after}"));
        }
    }
    let given = match converted["metadata"].take() {
        Value::Object(given) => given,
        Value::Null => return Err("missing metadata in converted object".to_owned()),
        _ => return Err("invalid metadata in converted object".to_owned()),
    };
    converted["metadata"] = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        let value = given.get(field).cloned().unwrap_or_default();
        if let Some((key, _)) =
            value.as_object().and_then(|members| members.iter().find(|(_, value)| !value.is_string()))
        {
            return Err(format!("metadata.{field}[{key}] must be a string in converted object"));
        }
        if !value.is_null() && !value.is_object() {
            return Err(format!("invalid metadata.{field} in converted object"));
        }
        converted.set_meta(field, value);
    }
    Ok(converted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str, metadata: Value) -> Value {
        json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": metadata})
    }

    #[test]
    fn metadata_is_that_of_the_original_but_for_labels_and_annotations() {
        let original = object("v1", json!({"name": "a", "uid": "1", "labels": {"x": "1"}, "generation": 2}));
        let answer = object("v2", json!({"name": "a", "uid": "1", "labels": {"y": "2"}, "generation": 9}));
        let converted = checked(&original, answer, "example.com/v2").unwrap();
        assert_eq!(converted["metadata"], json!({"name": "a", "uid": "1", "labels": {"y": "2"}, "generation": 2}));
        let rows = [
            (
                object("v1", json!({"name": "a"})),
                "invalid groupVersion (expected example.com/v2, received example.com/v1)",
            ),
            (object("v2", json!({"name": "b", "uid": "1"})), "must have the same name: a != b"),
            (object("v2", json!({"name": "a", "uid": "2"})), "must have the same UID: 1 != 2"),
            (
                object("v2", json!({"name": "a", "uid": "1", "labels": {"a": 1}})),
                "metadata.labels[a] must be a string in converted object",
            ),
        ];
        for (answer, expected) in rows {
            assert_eq!(checked(&original, answer, "example.com/v2").unwrap_err(), expected);
        }
    }

    #[test]
    fn answers_must_be_to_the_point() {
        let answer = |response: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        let rows = [
            (answer(Value::Null), "no response provided"),
            (answer(json!({"uid": "2"})), "expected response.uid=\"1\", got \"2\""),
            (answer(json!({"uid": "1", "result": {"status": "Failed", "message": "no"}})), "no"),
            (answer(json!({"uid": "1"})), "response.result.status was '', not 'Success'"),
        ];
        for (answer, expected) in rows {
            assert_eq!(objects_of(answer, "1", true).unwrap_err(), expected);
        }
        let done = answer(json!({"uid": "1", "result": {"status": "Success"}, "convertedObjects": [1]}));
        assert_eq!(objects_of(done, "1", true).unwrap(), [json!(1)]);
    }
}
