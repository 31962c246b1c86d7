//! Callers in this process, who need no connection.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::Service;

use crate::{
    Api, Body, BoxError,
    auth::{Peer, User},
};

/// The API as `user` has it.
pub fn local(api: &Api, user: User) -> Local {
    Local { api: api.clone(), peer: Peer::Local(user) }
}

/// The API as one caller in this process has it; a client can be built on it.
#[derive(Clone, Debug)]
pub struct Local {
    api: Api,
    peer: Peer,
}

impl<B> Service<Request<B>> for Local
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { api, peer } = self.clone();
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        Box::pin(async move { Ok(api.handle(request, &peer).await) })
    }
}
