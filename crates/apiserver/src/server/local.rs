//! Calls within the process.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::Service;

use super::Handler;
use crate::auth::{Peer, User};
use crate::codec::{Body, BoxError};

/// A service that calls a handler as one user; clients can be built on it as on a connection.
#[derive(Clone, Debug)]
pub struct Local<H> {
    handler: H,
    user: User,
}

impl<H: Handler> Local<H> {
    /// Calls of `user` to `handler`.
    pub fn new(handler: H, user: User) -> Self {
        Local { handler, user }
    }
}

impl<H, B> Service<Request<B>> for Local<H>
where
    H: Handler,
    H::Future: 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let answer = (self.handler)(request, Peer::Local(self.user.clone()));
        Box::pin(async move { Ok(answer.await) })
    }
}
