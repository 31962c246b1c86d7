//! What the server says about itself: health, version, metrics, and the keys that check its tokens.

mod components;
mod health;
mod metrics;
mod version;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use serde_json::Value;
use windlass_store::Store;

use crate::auth::Auth;
use crate::query::Query;

pub use components::{Component, Components, Running};
pub use health::Health;
pub use metrics::{Metrics, Observation};
pub use version::RELEASE;

/// The state behind these endpoints.
#[derive(Debug, Default)]
pub struct System {
    /// Whether the server is well and ready.
    pub health: Health,
    /// Which other parts run.
    pub components: Components,
    /// What it counted.
    pub metrics: Metrics,
}

impl System {
    /// The answer to a GET of `path`; `None` for paths of others.
    pub fn respond(&self, path: &str, query: &Query, auth: &Auth, store: &Store) -> Option<Response<Bytes>> {
        match path.trim_end_matches('/') {
            "/version" => Some(json("application/json", &version::version())),
            "/metrics" => Some(text(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.render(store))),
            "/.well-known/openid-configuration" => Some(json("application/json", &auth.issuer()?.configuration())),
            "/openid/v1/jwks" => Some(json("application/jwk-set+json", &auth.issuer()?.key_set())),
            path => self.health.respond(path, query),
        }
    }
}

fn json(content_type: &'static str, value: &Value) -> Response<Bytes> {
    text(StatusCode::OK, content_type, value.to_string())
}

fn text(status: StatusCode, content_type: &'static str, text: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
