//! Connections over the network.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Handler, Tls};
use crate::ApiError;
use crate::auth::{Peer, user_of_certificate};
use crate::codec::{Body, full};

/// More connections wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;
/// More requests at once on one connection wait.
const STREAMS_MAX: u32 = 1_000;
/// A client that has not secured its connection by then is gone.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that has not sent the head of its request by then is gone.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long requests may go on after the server was told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How long to wait when the system refuses more connections, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers connections to `listener` until `shutdown`, then gives running requests a moment to end.
pub async fn serve<H>(listener: TcpListener, tls: Option<Tls>, handler: H, shutdown: CancellationToken)
where
    H: Handler,
    H::Future: 'static,
{
    let connections = TaskTracker::new();
    let aborted = CancellationToken::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Some(permit) = shutdown.run_until_cancelled(room.clone().acquire_owned()).await {
        let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await else { break };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = connection(stream, tls.clone(), handler.clone(), shutdown.clone());
        let aborted = aborted.clone();
        connections.spawn(async move {
            aborted.run_until_cancelled(connection).await;
            drop(permit);
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(SHUTDOWN_GRACE, connections.wait()).await.is_err() {
        aborted.cancel();
        connections.wait().await;
    }
}

async fn connection<H>(stream: TcpStream, tls: Option<Tls>, handler: H, shutdown: CancellationToken)
where
    H: Handler,
    H::Future: 'static,
{
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return converse(stream, Peer::Remote { certificate: None }, handler, shutdown).await;
    };
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.0.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = match certificate.map(|certificate| user_of_certificate(certificate)).transpose() {
        Ok(user) => user,
        Err(error) => return tracing::debug!(%error, "a client certificate names no user"),
    };
    converse(stream, Peer::Remote { certificate }, handler, shutdown).await;
}

async fn converse<S, H>(stream: S, peer: Peer, handler: H, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
    H::Future: 'static,
{
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    server.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    let service = service_fn(move |request| answer(request, peer.clone(), handler.clone()));
    let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(error, "a connection ended early");
    }
}

/// One failed request must not end the others of its connection.
async fn answer<H: Handler>(request: Request<Incoming>, peer: Peer, handler: H) -> Result<Response<Body>, Infallible> {
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    let answered = AssertUnwindSafe(async move { handler(request, peer).await }).catch_unwind().await;
    Ok(answered.unwrap_or_else(|_| {
        let error = ApiError::internal("a request made the server panic; its log says where");
        let mut response = Response::new(full(error.status().to_string()));
        *response.status_mut() = error.code;
        response
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Empty;
    use hyper::body::Bytes;
    use hyper_util::rt::TokioIo;
    use std::future::ready;

    async fn ask(address: std::net::SocketAddr, path: &str) -> (u16, String) {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(connection);
        let request = Request::get(path).header("host", "test").body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        drop(sender);
        driver.await.unwrap().unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn requests_are_answered_until_shutdown_and_panics_are_contained() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let handler = |request: Request<Body>, _: Peer| {
            assert_ne!(request.uri().path(), "/panic", "asked for");
            ready(Response::new(full(request.uri().path().to_owned())))
        };
        let server = tokio::spawn(serve(listener, None, handler, shutdown.clone()));
        assert_eq!(ask(address, "/hello").await, (200, "/hello".to_owned()));
        assert_eq!(ask(address, "/panic").await.0, 500);
        assert_eq!(ask(address, "/again").await, (200, "/again".to_owned()));
        shutdown.cancel();
        server.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
