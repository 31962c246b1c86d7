//! The port for machines that look after this process: probes and metrics.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::manager::RunError;
use crate::metrics::Metrics;

/// How many connections are served at once.
const CONNECTIONS_MAX: usize = 64;

/// What the port tells.
#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
}

impl Admin {
    /// Listens on `address` and answers in the background until `stop`.
    pub(crate) async fn serve(self, address: SocketAddr, stop: CancellationToken) -> Result<SocketAddr, RunError> {
        let listen = |source| RunError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let local = listener.local_addr().map_err(listen)?;
        tokio::spawn(async move {
            tokio::select! {
                () = self.accept_all(listener) => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(local)
    }

    async fn accept_all(self, listener: TcpListener) {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            if connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = listener.accept().await else { continue };
            let admin = self.clone();
            connections.spawn(admin.converse(stream));
        }
    }

    async fn converse(self, stream: TcpStream) {
        let service = service_fn(move |request: Request<Incoming>| {
            std::future::ready(Ok::<_, Infallible>(self.answer(request.method(), request.uri().path())))
        });
        let server = auto::Builder::new(TokioExecutor::new());
        if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
            tracing::debug!(%error, "Connection to the admin port ended");
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
        }
        match path.trim_end_matches('/') {
            "/healthz" | "/livez" => text(StatusCode::OK, "ok".into()),
            "/readyz" => self.ready(),
            "/metrics" => text(StatusCode::OK, self.metrics.render()),
            _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".into()),
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        let lines: String = (self.health.report().into_iter())
            .map(|(name, trouble)| match trouble {
                None => format!("[+]{name} ok\n"),
                Some(trouble) => format!("[-]{name} failed: {trouble}\n"),
            })
            .collect();
        if self.health.is_ready() {
            text(StatusCode::OK, format!("{lines}ok\n"))
        } else {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{lines}not ready\n"))
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let content_type = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_names_what_is_wrong_and_life_does_not_depend_on_it() {
        let admin = Admin { metrics: Metrics::new(), health: Health::default() };
        assert_eq!(admin.answer(&Method::GET, "/readyz").status(), 200);
        let check = admin.health.check("watch pods", "has not listed yet");
        assert_eq!(admin.answer(&Method::GET, "/readyz").status(), 503);
        assert_eq!(admin.answer(&Method::GET, "/healthz").status(), 200);
        assert_eq!(admin.health.report(), [("watch pods".into(), Some("has not listed yet".into()))]);
        check.well();
        assert_eq!(admin.answer(&Method::GET, "/readyz").status(), 200);
        assert_eq!(admin.answer(&Method::POST, "/readyz").status(), 405);
    }
}
