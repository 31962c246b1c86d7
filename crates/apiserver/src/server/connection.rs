//! Network connections: accept, secure, serve, and end in order.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use http::Request;
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Tls, gathered::Gathered};
use crate::{
    Api,
    auth::{Peer, user_of_certificate},
    proxy::ClientAddress,
};

/// How many connections there may be at once; more wait.
const CONNECTIONS_MAX: usize = 4_096;
/// How long a client may take to agree on TLS.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long an HTTP/1.1 connection may wait for the head of its next request, the first one included.
const IDLE_TIME_MAX: Duration = Duration::from_secs(90);
/// How many requests and watches one HTTP/2 connection may have open.
const STREAMS_MAX: u32 = 1_000;
/// How long open requests may take after the end was announced.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more connections to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `api` on `listener` until `shutdown`; then watches end and open requests are finished. Without TLS every
/// client is anonymous unless it has a token.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, api: Api, shutdown: CancellationToken) {
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config));
    let (tasks, permits) = (TaskTracker::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, api, shutdown) = (acceptor.clone(), api.clone(), shutdown.clone());
        tasks.spawn(async move {
            if let Err(error) = connection(stream, acceptor, api, shutdown).await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(permit);
        });
    }
    drop(listener);
    api.shutdown().cancel();
    tasks.close();
    if timeout(DRAIN_TIME_MAX, tasks.wait()).await.is_err() {
        tracing::warn!("open requests did not finish in time");
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    api: Api,
    shutdown: CancellationToken,
) -> Result<(), crate::BoxError> {
    stream.set_nodelay(true)?;
    let client = ClientAddress(stream.peer_addr()?);
    let Some(acceptor) = acceptor else {
        return requests(stream, Protocol::Unknown, (Peer::Remote { certificate: None }, client), api, shutdown).await;
    };
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    let stream = timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await.map_err(late)??;
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
    let certificate = certificate.map(|certificate| user_of_certificate(certificate)).transpose()?;
    let protocol = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Unknown,
    };
    requests(stream, protocol, (Peer::Remote { certificate }, client), api, shutdown).await
}

/// What the client and the server agreed to speak.
enum Protocol {
    Http2,
    /// HTTP/1.1, whose connections can become something else, or whatever the client begins with.
    Unknown,
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocol: Protocol,
    (peer, client): (Peer, ClientAddress),
    api: Api,
    shutdown: CancellationToken,
) -> Result<(), crate::BoxError> {
    let peer = Arc::new(peer);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (api, peer) = (api.clone(), Arc::clone(&peer));
        request.extensions_mut().insert(client);
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        async move { Ok::<_, Infallible>(api.handle(request, &peer).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE_TIME_MAX);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
    match protocol {
        Protocol::Http2 => {
            let stream = Gathered::new(stream);
            let connection = builder.serve_connection(TokioIo::new(stream.clone()), service);
            let mut connection = pin!(connection);
            tokio::select! {
                result = stream.take_turns(|context| connection.as_mut().poll(context)) => return result,
                () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            stream.take_turns(|context| connection.as_mut().poll(context)).await
        }
        Protocol::Unknown => {
            let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
            tokio::select! {
                result = connection.as_mut() => return result,
                () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            connection.await
        }
    }
}
