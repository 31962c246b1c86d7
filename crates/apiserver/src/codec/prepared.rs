//! Answers that are made once and given to everybody: with a tag, and compressed for those who accept it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY},
};
use sha2::{Digest, Sha256};

use super::{
    Body,
    answer::{GZIP_BYTES_MIN, gzip},
    full,
};

/// An answer that stays as it is.
#[derive(Debug)]
pub(crate) struct Prepared {
    content: Bytes,
    content_type: &'static str,
    hash: String,
    compressed: OnceLock<Option<Bytes>>,
}

impl Prepared {
    /// The answer with this content.
    pub(crate) fn new(content: impl Into<Bytes>, content_type: &'static str) -> Arc<Self> {
        let content = content.into();
        let hash = hex::encode_upper(Sha256::digest(&content));
        Arc::new(Self { content, content_type, hash, compressed: OnceLock::new() })
    }

    /// The content as it is.
    pub(crate) fn content(&self) -> &[u8] {
        &self.content
    }

    /// A name for the content: it differs where the content differs.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The answer, or 304 for a client that has it already.
    pub(crate) fn respond(&self, asked: &HeaderMap) -> Response<Body> {
        let tag = format!("\"{}\"", self.hash);
        let text = |name| asked.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let unchanged = text(IF_NONE_MATCH).split(',').any(|known| known.trim().trim_start_matches("W/") == tag);
        let mut response = Response::new(Body::default());
        let headers = response.headers_mut();
        headers.insert(ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits are a header value"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        if unchanged {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        let accepted = text(ACCEPT_ENCODING).split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"));
        let content = match self.compressed().filter(|_| accepted) {
            Some(compressed) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
                compressed
            }
            None => self.content.clone(),
        };
        *response.body_mut() = full(content);
        response
    }

    fn compressed(&self) -> Option<Bytes> {
        let make = || (self.content.len() >= GZIP_BYTES_MIN).then(|| gzip(&self.content)).flatten();
        self.compressed.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn who_has_it_gets_nothing_and_who_accepts_gets_it_small() {
        let prepared = Prepared::new("x".repeat(GZIP_BYTES_MIN), "text/plain");
        let tag = prepared.respond(&HeaderMap::new()).headers()[ETAG].clone();
        assert_eq!(prepared.respond(&asking(IF_NONE_MATCH, tag.to_str().unwrap())).status(), 304);
        let small = prepared.respond(&asking(ACCEPT_ENCODING, "br, gzip;q=0.5"));
        assert_eq!(small.headers()[CONTENT_ENCODING], "gzip");
        let short = Prepared::new("x", "text/plain").respond(&asking(ACCEPT_ENCODING, "gzip"));
        assert!(!short.headers().contains_key(CONTENT_ENCODING));
    }
}
