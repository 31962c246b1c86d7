//! A port that answers HTTP.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::manager::RunError;

/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 64;

/// Answers requests.
pub(crate) trait Answer: Clone + Send + Sync + 'static {
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send;
}

/// Listens on `address` and answers in the background until `stop`.
pub(crate) async fn serve(
    address: SocketAddr,
    answer: impl Answer,
    stop: CancellationToken,
) -> Result<SocketAddr, RunError> {
    let listen = |source| RunError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let local = listener.local_addr().map_err(listen)?;
    tokio::spawn(async move {
        tokio::select! {
            () = accept_all(listener, answer) => {}
            () = stop.cancelled() => {}
        }
    });
    Ok(local)
}

async fn accept_all(listener: TcpListener, answer: impl Answer) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(converse(stream, answer.clone()));
    }
}

async fn converse(stream: TcpStream, answer: impl Answer) {
    let service = service_fn(move |request| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(answer.answer(request).await) }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "Connection ended");
    }
}

/// An answer for people.
pub(crate) fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    with_type(status, body.into_bytes(), "text/plain; charset=utf-8")
}

/// An answer for programs.
pub(crate) fn json(answer: &impl serde::Serialize) -> Response<Full<Bytes>> {
    match serde_json::to_vec(answer) {
        Ok(body) => with_type(StatusCode::OK, body, "application/json"),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
    }
}

/// An answer of any type.
pub(crate) fn with_type(status: StatusCode, body: Vec<u8>, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
