//! The body of a request as a document.

use bytes::Bytes;
use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::Value;
use windlass_schema::protobuf;

use super::{Document, parse_json, parse_yaml};
use crate::ApiError;

/// The forms that bodies come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Yaml,
    Protobuf,
    JsonPatch,
    MergePatch,
    StrategicPatch,
    ApplyYaml,
}

const OBJECT_TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

impl MediaType {
    /// What the `Content-Type` header names; no header means JSON.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let Some(header) = headers.get(CONTENT_TYPE) else { return Some(Self::Json) };
        let text = header.to_str().ok()?;
        match text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" | "" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            "application/json-patch+json" => Some(Self::JsonPatch),
            "application/merge-patch+json" => Some(Self::MergePatch),
            "application/strategic-merge-patch+json" => Some(Self::StrategicPatch),
            "application/apply-patch+yaml" => Some(Self::ApplyYaml),
            _ => None,
        }
    }
}

/// Reads the body of a request that carries an object.
pub(crate) fn document(headers: &HeaderMap, body: &Bytes) -> Result<Document, ApiError> {
    let read = match MediaType::of(headers) {
        Some(MediaType::Json) => parse_json(body),
        Some(MediaType::Yaml) => parse_yaml(body),
        Some(MediaType::Protobuf) => from_protobuf(body),
        _ => return Err(ApiError::unsupported_media_type(&OBJECT_TYPES)),
    };
    let document = read.map_err(|why| {
        let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]).into_owned();
        ApiError::bad_request(format!("the object provided is unrecognized: {why} ({text:?})"))
    })?;
    match document.value {
        Value::Object(_) => Ok(document),
        _ => Err(ApiError::bad_request("the object provided is unrecognized: it is not a map")),
    }
}

/// How much of a body that cannot be read is shown.
const SHOWN_BYTES: usize = 30;

fn from_protobuf(body: &Bytes) -> Result<Document, String> {
    let value = protobuf::decode(body, None).map_err(|error| error.to_string())?;
    Ok(Document { value, duplicates: Vec::new() })
}
