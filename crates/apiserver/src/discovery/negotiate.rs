//! Which form of discovery a client asks for.

use http::{HeaderMap, header::ACCEPT};

use crate::ApiError;

/// A form of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One document per group and version.
    Plain,
    /// The same in protobuf.
    Binary,
    /// Everything in one document.
    Aggregated(AggregatedVersion),
}

/// A version of the aggregated form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AggregatedVersion {
    V2,
    V2beta1,
}

impl AggregatedVersion {
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::V2 => "apidiscovery.k8s.io/v2",
            Self::V2beta1 => "apidiscovery.k8s.io/v2beta1",
        }
    }

    /// The type of the answer; clients compare it with what they asked for.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2beta1 => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        }
    }
}

/// The first form in the `Accept` header that can be served.
pub(super) fn form(headers: &HeaderMap) -> Result<Form, ApiError> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.trim().is_empty() {
        return Ok(Form::Plain);
    }
    accept.split(',').find_map(clause).ok_or_else(|| ApiError::not_acceptable(&["application/json"]))
}

fn clause(text: &str) -> Option<Form> {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next()?;
    let (mut group, mut version, mut kind) = ("", "", "");
    for (key, value) in parts.filter_map(|part| part.split_once('=')) {
        match key.trim() {
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            "as" => kind = value.trim(),
            _ => {}
        }
    }
    match (media_type, group, version, kind) {
        ("application/json", "apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList") => {
            Some(Form::Aggregated(AggregatedVersion::V2))
        }
        ("application/json", "apidiscovery.k8s.io", "v2beta1", "APIGroupDiscoveryList") => {
            Some(Form::Aggregated(AggregatedVersion::V2beta1))
        }
        ("application/vnd.kubernetes.protobuf", "", "", "") => Some(Form::Binary),
        ("application/json" | "application/*" | "*/*", "", "", "") => Some(Form::Plain),
        _ => None,
    }
}
