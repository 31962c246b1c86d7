//! The port of a joined node, at which the API server asks for logs, commands and connections of Pods, as of a kubelet.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::auth::{User, user_of_certificate};
use windlass_node::{Body, Node};

use crate::{Identity, StartError};

/// Connections at the same time; each may be a session of somebody.
const CONNECTIONS_MAX: usize = 1024;
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const IDLE_TIME_MAX: Duration = Duration::from_secs(120);
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The port of a joined node.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) node: Arc<Node>,
    pub(super) client: Client,
    pub(super) name: String,
    pub(super) tls: Arc<ServerConfig>,
}

/// Only those come in whom the authority of the cluster has signed.
pub(super) fn tls(shown: &Identity, authority: &[Vec<u8>]) -> Result<Arc<ServerConfig>, StartError> {
    let mut roots = RootCertStore::empty();
    for certificate in authority {
        roots.add(CertificateDer::from(certificate.clone())).map_err(|error| StartError::Door(error.to_string()))?;
    }
    let fail = |error: &dyn std::fmt::Display| StartError::Door(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.build().map_err(|error| fail(&error))?;
    let chain = CertificateDer::pem_slice_iter(shown.certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).map_err(|error| fail(&error))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fail(&error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain.map_err(|error| fail(&error))?, key)
        .map_err(|error| fail(&error))?;
    // Sessions leave HTTP behind, which only connections of the first version can.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl Door {
    /// Answers until told to stop; sessions end with it.
    pub(super) async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let (acceptor, permits) = (TlsAcceptor::from(Arc::clone(&self.tls)), Arc::new(Semaphore::new(CONNECTIONS_MAX)));
        loop {
            let permit = Arc::clone(&permits).acquire_owned().await.expect("the semaphore is never closed");
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (door, acceptor, stop) = (self.clone(), acceptor.clone(), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    outcome = door.connection(stream, acceptor) => {
                        if let Err(error) = outcome {
                            tracing::debug!(%error, "a connection to the node ended");
                        }
                    }
                    () = stop.cancelled() => {}
                }
                drop(permit);
            });
        }
    }

    async fn connection(self, stream: TcpStream, acceptor: TlsAcceptor) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        let stream = tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await.map_err(late)??;
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
        let user = certificate.and_then(|certificate| user_of_certificate(certificate).ok());
        let user = Arc::new(user.ok_or_else(|| io::Error::other("the client's certificate names nobody"))?);
        let service = service_fn(move |request: Request<Incoming>| {
            let (door, user) = (self.clone(), Arc::clone(&user));
            async move { Ok::<_, Infallible>(door.answer(request, &user).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIME_MAX)
            .serve_connection(TokioIo::new(stream), service);
        connection.with_upgrades().await.map_err(io::Error::other)
    }

    async fn answer(&self, request: Request<Incoming>, user: &User) -> Response<Body> {
        match self.permits(user, &request).await {
            Ok(true) => self.node.serve(request).await,
            Ok(false) => {
                let (user, what) = (&user.name, attributes(&self.name, &request));
                let verb = what.verb.unwrap_or_default();
                let part = what.subresource.unwrap_or_default();
                refuse(StatusCode::FORBIDDEN, format!("{user} may not {verb} nodes/{part} of {}", self.name))
            }
            Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, format!("the API server was not asked: {error}")),
        }
    }

    /// Asks the API server, as a kubelet does.
    async fn permits<B>(&self, user: &User, request: &Request<B>) -> kube::Result<bool> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                groups: Some(user.groups.iter().map(ToString::to_string).collect()),
                resource_attributes: Some(attributes(&self.name, request)),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

/// The right that a request to a kubelet needs.
fn attributes<B>(node: &str, request: &Request<B>) -> ResourceAttributes {
    let verb = match *request.method() {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "get",
    };
    let part = match request.uri().path().trim_start_matches('/').split('/').next() {
        Some("stats") => "stats",
        Some("metrics") => "metrics",
        _ => "proxy",
    };
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        resource: Some("nodes".to_owned()),
        subresource: Some(part.to_owned()),
        name: Some(node.to_owned()),
        version: Some("v1".to_owned()),
        ..ResourceAttributes::default()
    }
}

fn refuse(status: StatusCode, message: String) -> Response<Body> {
    let body = Full::from(message).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Method, path: &str, verb: &str, part: &str) {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let attributes = attributes("edge", &request);
        assert_eq!(attributes.verb.as_deref(), Some(verb), "{path}");
        assert_eq!(attributes.subresource.as_deref(), Some(part), "{path}");
        assert_eq!(attributes.name.as_deref(), Some("edge"));
    }

    #[test]
    fn a_request_needs_the_right_that_a_kubelet_asks_for() {
        check(Method::GET, "/containerLogs/n/p/c?follow=true", "get", "proxy");
        check(Method::POST, "/exec/n/p/c?command=ls", "create", "proxy");
        check(Method::GET, "/stats/summary", "get", "stats");
        check(Method::GET, "/metrics", "get", "metrics");
    }
}
