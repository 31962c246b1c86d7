//! Request lines, queries and headers.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE},
};

use super::line;
use crate::{
    codec::{Accept, MediaType, parse_json},
    request::{RequestInfo, Verb},
    rest::{ContinueToken, DeleteOptions, ListOptions, WriteOptions},
};

/// `METHOD URI` on the first line, the body on the others.
pub(super) fn request(bytes: &[u8]) {
    let (first, body) = line(bytes);
    let Ok(first) = std::str::from_utf8(first) else { return };
    let (method, uri) = first.split_once(' ').unwrap_or(("GET", first));
    let (Ok(method), Ok(uri)) = (Method::from_bytes(method.as_bytes()), uri.parse::<Uri>()) else { return };
    let info = RequestInfo::new(&method, &uri);
    let _ = info.attributes("get");
    for verb in [Verb::Create, Verb::Update, Verb::Patch] {
        if let Ok(options) = WriteOptions::new(&info.query, verb) {
            let _ = options.described("PatchOptions");
        }
    }
    for watch in [true, false] {
        let Ok(options) = ListOptions::new(&info.query, watch) else { continue };
        if let Some(Ok(token)) = options.continue_token.as_deref().map(ContinueToken::decode) {
            assert_eq!(ContinueToken::decode(&token.encode()).ok(), Some(token));
        }
    }
    let body = parse_json(body).ok().map(|document| document.value);
    if let Ok(options) = DeleteOptions::new(&info.query, body.as_ref()) {
        let _ = options.described();
    }
}

/// Headers, one on each line as `Name: value`; a line without a name is an `Accept`.
pub(super) fn accept(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for text in bytes.split(|byte| *byte == b'\n') {
        let (name, value) = match text.iter().position(|byte| *byte == b':') {
            Some(end) => (HeaderName::from_bytes(&text[..end]).unwrap_or(ACCEPT), &text[end + 1..]),
            None => (ACCEPT, text),
        };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        for name in [name, CONTENT_TYPE, ACCEPT_ENCODING] {
            headers.insert(name, value.clone());
        }
    }
    let query = crate::query::Query::default();
    let (builtin, custom) = (Accept::new(&headers, &query), Accept::of_custom(&headers, &query));
    assert!(builtin.is_ok() || custom.is_err(), "what custom kinds can do, all can");
    let _ = MediaType::of(&headers);
    let _ = crate::auth::Impersonation::of_headers(&headers);
}
