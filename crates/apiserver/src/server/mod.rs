//! Listening: TLS, HTTP/1.1 and HTTP/2, and calls within the process.
//!
//! A handler is any function from a request and its [`Peer`] to an answer, so that network and process take one path.

mod local;
mod tcp;
mod tls;

use http::{Request, Response};

use crate::auth::Peer;
use crate::codec::Body;

pub use local::Local;
pub use tcp::serve;
pub use tls::{Tls, TlsError};

/// What answers requests, wherever they come from.
pub trait Handler: Fn(Request<Body>, Peer) -> Self::Future + Clone + Send + Sync + 'static {
    /// The answer in the making.
    type Future: Future<Output = Response<Body>> + Send;
}

impl<H, F> Handler for H
where
    H: Fn(Request<Body>, Peer) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send,
{
    type Future = F;
}
