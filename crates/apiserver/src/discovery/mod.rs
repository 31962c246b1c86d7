//! Discovery: which groups, versions and resources there are.

mod aggregated;
mod groups;
mod legacy;
mod negotiate;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    ApiError, Config,
    codec::{Body, full, json_bytes},
    registry::Catalog,
};

pub(crate) use groups::{Group, groups};
use negotiate::{Form, form};

/// Answers a path of discovery; `None` for any other path.
pub(crate) fn respond(
    path: &str,
    headers: &HeaderMap,
    catalog: &Catalog,
    config: &Config,
) -> Option<Result<Response<Body>, ApiError>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let value = match &parts[..] {
        ["api"] if !config.aggregated_discovery => Some(legacy::versions(&config.address)),
        ["apis"] if !config.aggregated_discovery => Some(legacy::groups(catalog)),
        ["api"] => return Some(root(headers, catalog, true, || legacy::versions(&config.address))),
        ["apis"] => return Some(root(headers, catalog, false, || legacy::groups(catalog))),
        ["api", "v1"] => legacy::resources(catalog, "", "v1"),
        ["apis", group] => legacy::group(catalog, group),
        ["apis", group, version] => legacy::resources(catalog, group, version),
        _ => return None,
    };
    Some(value.ok_or_else(ApiError::no_such_path).and_then(|value| plain(headers, &value)))
}

fn root(
    headers: &HeaderMap,
    catalog: &Catalog,
    core: bool,
    legacy: impl FnOnce() -> Value,
) -> Result<Response<Body>, ApiError> {
    match form(headers)? {
        Form::Plain => plain(headers, &legacy()),
        Form::Aggregated(version) => {
            let content = json_bytes(&aggregated::list(catalog, core, version));
            Ok(tagged(headers, content, version.content_type()))
        }
    }
}

fn plain(headers: &HeaderMap, value: &Value) -> Result<Response<Body>, ApiError> {
    form(headers)?;
    let mut response = Response::new(full(json_bytes(value)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}

/// An answer with a tag, or 304 for a client that has it already.
pub(crate) fn tagged(headers: &HeaderMap, content: Bytes, content_type: &'static str) -> Response<Body> {
    let tag = format!("\"{}\"", hex::encode_upper(Sha256::digest(&content)));
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let unchanged =
        known.is_some_and(|known| known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
    let mut response = Response::new(if unchanged { Body::default() } else { full(content) });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits are a header value"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
