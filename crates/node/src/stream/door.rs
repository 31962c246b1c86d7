//! Lets clients in: finds out what they ask for, agrees on a protocol, and begins the stream.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::channel::{PROTOCOLS, Protocol};
use super::options::Options;
use super::remote::{Channel, Remote};
use super::{exec, websocket};
use crate::pod::Live;
use crate::serve::{Body, empty, failure};

/// How many streams there may be at once.
const STREAMS_MAX: usize = 256;
/// How long a client may take to let go of HTTP.
const SWITCH_TIME_MAX: Duration = Duration::from_secs(10);

/// Where clients come in.
#[derive(Debug)]
pub(crate) struct Door {
    free: Arc<Semaphore>,
}

impl Default for Door {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }
}

/// Why a client is not let in.
pub(super) struct Refusal(StatusCode, String);

impl Door {
    /// Runs a program in a container for the sender of a request.
    pub(crate) fn exec<B>(&self, request: Request<B>, live: &Live) -> Response<Body> {
        let inside = live.inside.clone();
        self.command(request, move |options, remote| exec::run(inside, options, remote))
    }

    fn command<B, F>(
        &self,
        mut request: Request<B>,
        begin: impl FnOnce(Options, Remote) -> F + Send + 'static,
    ) -> Response<Body>
    where
        F: Future<Output = ()> + Send,
    {
        let options = match Options::parse(request.uri().query().unwrap_or_default()) {
            Ok(options) => options,
            Err(why) => return failure(StatusCode::BAD_REQUEST, why),
        };
        let protocol = match agree(request.headers()) {
            Ok(protocol) => protocol,
            Err(Refusal(status, why)) => return failure(status, why),
        };
        let Some(permit) = self.enter() else { return full() };
        let answer = websocket::agreed(request.headers(), protocol.name);
        let client = hyper::upgrade::on(&mut request);
        let first = if options.stdout { Channel::Stdout } else { Channel::Stderr };
        tokio::spawn(async move {
            let _permit = permit;
            if let Some(connection) = switched(client).await {
                let remote = websocket::remote(connection, protocol, first).await;
                begin(options, remote).await;
            }
        });
        switching(answer)
    }

    fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}

fn agree(headers: &HeaderMap) -> Result<Protocol, Refusal> {
    if !websocket::is_wished(headers) {
        return Err(Refusal(StatusCode::BAD_REQUEST, "Upgrade request required".to_owned()));
    }
    let known = PROTOCOLS.map(|protocol| (protocol.name, protocol));
    websocket::negotiate(headers, &known).map_err(|why| Refusal(StatusCode::FORBIDDEN, why))
}

fn full() -> Response<Body> {
    failure(StatusCode::TOO_MANY_REQUESTS, format!("{STREAMS_MAX} streams are open already; end some of them"))
}

fn switching(headers: HeaderMap) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

async fn switched(client: OnUpgrade) -> Option<TokioIo<Upgraded>> {
    match tokio::time::timeout(SWITCH_TIME_MAX, client).await {
        Ok(Ok(connection)) => Some(TokioIo::new(connection)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection could not be upgraded");
            None
        }
        Err(_) => None,
    }
}
