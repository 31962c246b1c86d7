//! The bodies of requests and answers, as the audit log shows them.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{
    HeaderMap, Request, Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::BodyExt;
use serde_json::Value;
use windlass_schema::protobuf;

use crate::{
    ApiError, Body,
    codec::{full, parse_yaml, read},
};

/// The longest body that is logged.
const LOGGED_BYTES_MAX: u64 = 8 << 20;

/// The body of a request, which can still be read.
pub(crate) async fn of_request(request: Request<Body>) -> Result<(Request<Body>, Bytes), ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = read(body).await?;
    Ok((Request::from_parts(parts, full(bytes.clone())), bytes))
}

/// The body of an answer, which can still be sent.
pub(crate) async fn of_response(response: Response<Body>) -> (Response<Body>, Bytes) {
    let (parts, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => {
            let bytes = body.to_bytes();
            (Response::from_parts(parts, full(bytes.clone())), bytes)
        }
        Err(_) => (Response::from_parts(parts, Body::default()), Bytes::new()),
    }
}

/// The object in a body; `None` if there is none.
pub(super) fn object(headers: &HeaderMap, body: &Bytes) -> Option<Value> {
    if body.is_empty() || body.len() as u64 > LOGGED_BYTES_MAX {
        return None;
    }
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let unpacked = match header(CONTENT_ENCODING) {
        "gzip" => gunzipped(body)?,
        _ => body.clone(),
    };
    let media_type = header(CONTENT_TYPE);
    if media_type.contains("yaml") {
        parse_yaml(&unpacked).ok().map(|document| document.value)
    } else if media_type.contains("protobuf") {
        protobuf::decode(&unpacked, None).ok()
    } else {
        serde_json::from_slice(&unpacked).ok()
    }
}

fn gunzipped(body: &Bytes) -> Option<Bytes> {
    let mut text = Vec::new();
    GzDecoder::new(&body[..]).take(LOGGED_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(text.into())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_are_read_in_every_form() {
        let with =
            |media_type: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        let binary = Bytes::from(protobuf::encode(&pod).unwrap());
        let found = object(&with(protobuf::CONTENT_TYPE), &binary).unwrap();
        assert_eq!((&found["kind"], &found["metadata"]["name"]), (&json!("Pod"), &json!("a")));
        assert_eq!(object(&with("application/json"), &Bytes::from(pod.to_string())), Some(pod));
        assert_eq!(object(&with("application/apply-patch+yaml"), &Bytes::from("a: 1")), Some(json!({"a": 1})));
        assert_eq!(object(&HeaderMap::new(), &Bytes::new()), None);
        assert_eq!(object(&HeaderMap::new(), &Bytes::from("no JSON")), None);
    }
}
