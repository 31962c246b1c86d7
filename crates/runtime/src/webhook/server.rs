//! The HTTPS server: connections, limits, and the certificate that can be replaced while it runs.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{InconsistentKeys, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::certificates::Pair;
use super::figures::WebhookFamilies;
use super::routes::{RouteError, Routes};
use crate::port::{text, with_type};

/// How many connections are served at once; more wait.
const CONNECTIONS_MAX: usize = 256;
/// How long a caller may take to agree on TLS.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection may wait for its next request.
const IDLE_TIME_MAX: Duration = Duration::from_secs(90);
/// How long a body may take to arrive, and how long an answer may take to be found: callers wait 30 s at most.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// The largest body: lists are converted in one piece.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long open requests may take after the end was announced.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more connections to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The certificate that new connections see; none before the first was made.
#[derive(Debug, Default)]
pub(super) struct Shown(RwLock<Option<Arc<CertifiedKey>>>);

impl Shown {
    /// Shows another certificate from now on.
    pub(super) fn show(&self, pair: &Pair) -> Result<(), ShowError> {
        let certificates =
            CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
        let key = rustls::crypto::ring::sign::any_supported_type(&key)?;
        let certified = CertifiedKey::new(certificates, key);
        // Files are renewed one after the other: what does not belong together is read again soon.
        match certified.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(error) => return Err(error.into()),
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why a certificate cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShowError {
    #[error("the certificate is no PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("the key cannot be used: {0}")]
    Key(#[from] rustls::Error),
}

/// What is served, and what is counted of it.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) routes: Arc<Routes>,
    pub(super) figures: WebhookFamilies,
}

/// Answers on `listener` until `stop`; then open requests are finished.
pub(super) async fn serve(listener: TcpListener, shown: Arc<Shown>, served: Served, stop: CancellationToken) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the usual versions of TLS")
        .with_no_client_auth()
        .with_cert_resolver(shown);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (tasks, permits) = (TaskTracker::new(), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
    loop {
        let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (acceptor, served, stop) = (acceptor.clone(), served.clone(), stop.clone());
        tasks.spawn(async move {
            converse(stream, &acceptor, served, stop).await;
            drop(permit);
        });
    }
    tasks.close();
    if timeout(DRAIN_TIME_MAX, tasks.wait()).await.is_err() {
        tracing::warn!("Requests to webhooks did not end within {DRAIN_TIME_MAX:?} and are dropped");
    }
}

async fn converse(stream: TcpStream, acceptor: &TlsAcceptor, served: Served, stop: CancellationToken) {
    let stream = match timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "No agreement on TLS with a caller of webhooks"),
        Err(_) => return,
    };
    let service = service_fn(move |request: Request<Incoming>| {
        let served = served.clone();
        async move { Ok::<_, Infallible>(respond(request, served).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE_TIME_MAX);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "Connection to webhooks ended");
    }
}

async fn respond(request: Request<Incoming>, served: Served) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    if !served.routes.has(&path) {
        return text(StatusCode::NOT_FOUND, format!("{}\n", RouteError::Path(path)));
    }
    let in_flight = served.figures.begin(&path);
    let response = answer(request, path, served).await;
    in_flight.answered(response.status().as_u16());
    response
}

async fn answer(request: Request<Incoming>, path: String, served: Served) -> Response<Full<Bytes>> {
    let Served { routes, figures } = served;
    if request.method() != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only POST\n".into());
    }
    let body = match timeout(ANSWER_TIME_MAX, Limited::new(request.into_body(), BODY_BYTES_MAX).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return text(StatusCode::PAYLOAD_TOO_LARGE, format!("at most {BODY_BYTES_MAX} bytes\n"));
        }
        Ok(Err(_)) | Err(_) => return text(StatusCode::BAD_REQUEST, "the body did not arrive\n".into()),
    };
    // The author's function may take its time, and may panic: neither is to be felt by others.
    let asked = path.clone();
    let answer = tokio::task::spawn_blocking(move || routes.answer(&asked, &body));
    match timeout(ANSWER_TIME_MAX, answer).await {
        Ok(Ok(Ok(answer))) => with_type(StatusCode::OK, answer, "application/json"),
        // The API server then does what the webhook's failure policy says.
        Ok(Ok(Err(error @ RouteError::Blind(_)))) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        Ok(Ok(Err(error))) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        Ok(Err(_)) => {
            figures.panicked(&path);
            tracing::error!(webhook = %path, "A webhook panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the webhook panicked: see the operator's log\n".into())
        }
        Err(_) => {
            tracing::error!(webhook = %path, "A webhook took longer than {ANSWER_TIME_MAX:?}");
            text(StatusCode::GATEWAY_TIMEOUT, "the webhook took too long\n".into())
        }
    }
}
