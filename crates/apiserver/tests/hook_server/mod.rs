//! A webhook over HTTPS that answers as a test wants, and remembers what it was asked.

#![allow(dead_code, reason = "every test file uses its own part of the server")]

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Answer = dyn Fn(&str, &Value) -> Value + Send + Sync;

/// A webhook that runs as long as the test.
pub(crate) struct HookServer {
    pub(crate) address: SocketAddr,
    authority: String,
    asked: Arc<Mutex<Vec<Value>>>,
    connections: Arc<Mutex<usize>>,
}

impl HookServer {
    /// A server whose certificate is for `name`; `answer` makes the whole answer of the path and the whole question.
    pub(crate) async fn start(name: &str, answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Self {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            authority: authority.pem(),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let shared = (Arc::clone(&server.asked), Arc::clone(&server.connections));
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), shared, Arc::new(answer)));
        server
    }

    /// A webhook of admission at 127.0.0.1; `answer` makes the response of the path and the request.
    pub(crate) async fn admission(answer: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Self {
        Self::start("127.0.0.1", move |path, question| admission(question, answer(path, &question["request"]))).await
    }

    /// The `caBundle` of those who call this server.
    pub(crate) fn ca_bundle(&self) -> String {
        base64::engine::general_purpose::STANDARD.encode(&self.authority)
    }

    /// The `clientConfig` of those who call this server by its address.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle()})
    }

    /// The questions until now, which are forgotten.
    pub(crate) fn asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// The review that answers `question` with `response`.
pub(crate) fn admission(question: &Value, mut response: Value) -> Value {
    if response.get("uid").is_none() {
        response["uid"] = question["request"]["uid"].clone();
    }
    json!({"apiVersion": question["apiVersion"], "kind": "AdmissionReview", "response": response})
}

/// A response that allows the request with changes.
pub(crate) fn patched(operations: &Value) -> Value {
    let patch = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

type Shared = (Arc<Mutex<Vec<Value>>>, Arc<Mutex<usize>>);

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, shared: Shared, answer: Arc<Answer>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared, answer) = (acceptor.clone(), shared.clone(), Arc::clone(&answer));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            *shared.1.lock().unwrap() += 1;
            let service = service_fn(|request| respond(request, &shared.0, &answer));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    asked: &Mutex<Vec<Value>>,
    answer: &Arc<Answer>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let question: Value = serde_json::from_slice(&body).unwrap();
    asked.lock().unwrap().push(question.clone());
    if path == "/slow" {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    let mut response = Response::new(Full::from(answer(&path, &question).to_string()));
    if path == "/broken" {
        *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    }
    Ok(response)
}
