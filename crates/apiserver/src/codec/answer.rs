//! Values as answers.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY},
};
use serde_json::Value;
use windlass_schema::protobuf;

use super::{Accept, Body, Form, full};

/// Shorter answers are not worth compressing.
pub(super) const GZIP_BYTES_MIN: usize = 128 << 10;

/// The answer that carries `value`.
pub(crate) fn respond(status: StatusCode, value: &Value, accept: &Accept) -> Response<Body> {
    let (content_type, text) = match accept.form {
        Form::Protobuf => protobuf_or_json(value),
        Form::Yaml => ("application/yaml", yaml(value)),
        Form::Json if accept.pretty => ("application/json", pretty(value)),
        Form::Json => ("application/json", json_bytes(value)),
    };
    respond_text(status, content_type, text, accept)
}

/// The answer that carries `text`, which is in the form that the client accepts.
pub(crate) fn respond_text(
    status: StatusCode,
    content_type: &'static str,
    text: Bytes,
    accept: &Accept,
) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    let compressed = (accept.gzip && text.len() >= GZIP_BYTES_MIN).then(|| gzip(&text)).flatten();
    let text = match compressed {
        Some(compressed) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
            compressed
        }
        None => text,
    };
    *response.body_mut() = full(text);
    response
}

/// What has no protobuf form is sent as JSON; clients read the type of the answer.
fn protobuf_or_json(value: &Value) -> (&'static str, Bytes) {
    match protobuf::encode(value) {
        Ok(bytes) => (protobuf::CONTENT_TYPE, bytes.into()),
        Err(error) => {
            tracing::debug!(%error, "an answer that was wanted as protobuf is JSON");
            ("application/json", json_bytes(value))
        }
    }
}

/// `value` as compact JSON.
pub(crate) fn json_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("a JSON value can be written").into()
}

fn pretty(value: &Value) -> Bytes {
    let mut text = serde_json::to_vec_pretty(value).expect("a JSON value can be written");
    text.push(b'\n');
    text.into()
}

fn yaml(value: &Value) -> Bytes {
    // JSON is YAML, so that an answer is there even for what the writer refuses.
    serde_saphyr::to_string(value).map_or_else(|_| json_bytes(value), Bytes::from)
}

/// `None` if it cannot be compressed; then it is sent as it is.
pub(super) fn gzip(text: &Bytes) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    encoder.write_all(text).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn long_answers_are_compressed_for_those_who_accept_it() {
        let long = json!({"text": "x".repeat(GZIP_BYTES_MIN)});
        let accept = Accept { gzip: true, ..Accept::JSON };
        let compressed = respond(StatusCode::OK, &long, &accept);
        assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
        assert!(compressed.into_body().collect().await.unwrap().to_bytes().len() < 10_000);
        let plain = respond(StatusCode::OK, &long, &Accept::JSON);
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert!(!respond(StatusCode::OK, &json!({}), &accept).headers().contains_key(CONTENT_ENCODING));
    }

    #[tokio::test]
    async fn yaml_answers_are_yaml() {
        let answer = respond(StatusCode::OK, &json!({"a": {"b": "1"}}), &Accept { form: Form::Yaml, ..Accept::JSON });
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(super::super::parse_yaml(&text).unwrap().value, json!({"a": {"b": "1"}}));
    }
}
