//! Lets clients in: finds out what they ask for, agrees on a protocol, and begins the stream.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;

use super::forward::Destination;
use super::handshake::{Agreed, CommandSpeech, ForwardSpeech, Refusal};
use super::options::Options;
use super::remote::{Channel, Remote};
use super::spdy::Connection;
use super::{attach, exec, forward, handshake, multiplexed, tunnel, view, websocket};
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

impl Door {
    /// Runs a program in a container for the sender of a request.
    pub(crate) fn exec<B>(&self, request: Request<B>, live: &Live) -> Response<Body> {
        let inside = live.inside.clone();
        self.command(request, |options| options, move |options, remote| exec::run(inside, options, remote))
    }

    /// Attaches the sender of a request to the program of a container.
    pub(crate) fn attach<B>(&self, request: Request<B>, live: &Live) -> Response<Body> {
        let console = Arc::clone(&live.console);
        let has_terminal = console.has_terminal();
        // Whether there is a terminal is up to the container.
        let adjust = move |options: Options| {
            let stderr = options.stderr && !has_terminal;
            Options { stderr, ..options }
        };
        self.command(request, adjust, move |options, remote| attach::run(console, options, remote))
    }

    /// Forwards connections of the sender of a request to ports of a Pod.
    pub(crate) fn forward<B>(&self, request: Request<B>, destination: Destination) -> Response<Body> {
        self.open(request, handshake::forwarding, move |connection, speech| async move {
            let connection = match speech {
                ForwardSpeech::Tunnelled => Connection::new(tunnel::inside(websocket::socket(connection).await)),
                ForwardSpeech::Plain => Connection::new(connection),
            };
            forward::run(connection, destination).await;
        })
    }

    /// Shows an answer over WebSocket, if the sender of a request wants that.
    pub(crate) fn view<B>(&self, request: Request<B>, shown: Response<Body>) -> Response<Body> {
        if !websocket::is_wished(request.headers()) || shown.status() != StatusCode::OK {
            return shown;
        }
        self.open(request, handshake::viewing, move |connection, speech| async move {
            view::run(connection, speech, shown.into_body()).await;
        })
    }

    fn command<B, F>(
        &self,
        request: Request<B>,
        adjust: impl FnOnce(Options) -> Options,
        begin: impl FnOnce(Options, Remote) -> F + Send + 'static,
    ) -> Response<Body>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let options = match Options::parse(request.uri().query().unwrap_or_default()) {
            Ok(options) => adjust(options),
            Err(why) => return failure(StatusCode::BAD_REQUEST, why),
        };
        self.open(request, handshake::command, move |connection, speech| async move {
            if let Some(remote) = remote(connection, speech, &options).await {
                let gone = remote.gone.clone();
                let program = tokio::spawn(begin(options, remote));
                // A program may outlive its client; the place of the client is free for the next.
                tokio::select! {
                    _ = program => {}
                    () = gone.cancelled() => {}
                }
            }
        })
    }

    /// Agrees with the sender of a request on how to speak, switches, and lets `serve` do the rest.
    fn open<B, S, F>(
        &self,
        mut request: Request<B>,
        agree: impl FnOnce(&HeaderMap) -> Result<Agreed<S>, Refusal>,
        serve: impl FnOnce(TokioIo<Upgraded>, S) -> F + Send + 'static,
    ) -> Response<Body>
    where
        S: Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let Agreed { speech, answer } = match agree(request.headers()) {
            Ok(agreed) => agreed,
            Err(Refusal(status, why)) => return failure(status, why),
        };
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else { return full() };
        let client = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let _permit = permit;
            if let Some(connection) = switched(client).await {
                serve(connection, speech).await;
            }
        });
        switching(answer)
    }
}

async fn remote(connection: TokioIo<Upgraded>, speech: CommandSpeech, options: &Options) -> Option<Remote> {
    match speech {
        CommandSpeech::Channels(protocol) => {
            let first = if options.stdout { Channel::Stdout } else { Channel::Stderr };
            Some(websocket::remote(connection, protocol, first).await)
        }
        CommandSpeech::Multiplexed(version) => multiplexed::remote(Connection::new(connection), options, version).await,
    }
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
