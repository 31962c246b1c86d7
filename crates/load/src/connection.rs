//! Connections to the server under load: TLS, HTTP/2, a client certificate.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How much a stream may send ahead: as much as Go's client allows.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Where the server is and who asks.
#[derive(clap::Args)]
pub(crate) struct Credentials {
    /// The server, such as `https://127.0.0.1:6443`.
    #[arg(long)]
    server: Uri,
    /// The certificate of the authority that signed the server's.
    #[arg(long)]
    authority: PathBuf,
    /// The client's certificate.
    #[arg(long)]
    certificate: PathBuf,
    /// The key of the client's certificate.
    #[arg(long)]
    key: PathBuf,
}

/// The server, ready to be connected to.
#[derive(Clone)]
pub(crate) struct Target {
    server: Uri,
    tls: TlsConnector,
}

impl Target {
    pub(crate) fn new(credentials: &Credentials) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(&credentials.authority)? {
            roots.add(certificate?)?;
        }
        let chain = CertificateDer::pem_file_iter(&credentials.certificate)?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(&fs::read(&credentials.key)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_root_certificates(roots).with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { server: credentials.server.clone(), tls: TlsConnector::from(Arc::new(config)) })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let host = self.server.host().context("the server has no host")?;
        let stream = TcpStream::connect((host, self.server.port_u16().unwrap_or(443))).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(ServerName::try_from(host.to_owned())?, stream).await?;
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { server: self.server.clone(), sender })
    }
}

/// One HTTP/2 connection; a clone is the same.
#[derive(Clone)]
pub(crate) struct Connection {
    server: Uri,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Sends a request; the answer's body is still to be read.
    pub(crate) async fn open(&self, method: Method, path: &str, kind: &str, body: Bytes) -> Result<Response<Incoming>> {
        let authority = self.server.authority().context("the server has no authority")?;
        let uri = Uri::builder().scheme("https").authority(authority.clone()).path_and_query(path).build()?;
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, kind)
            .header(header::USER_AGENT, "load/1")
            .body(Full::new(body))?;
        Ok(self.sender.clone().send_request(request).await?)
    }

    /// Sends a request and reads the answer; every status but a success is an error.
    pub(crate) async fn send(&self, method: Method, path: &str, kind: &str, body: Bytes) -> Result<Bytes> {
        let (status, bytes) = self.exchange(method.clone(), path, kind, body).await?;
        if !status.is_success() {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn exchange(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes)> {
        let response = self.open(method, path, kind, body).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }

    /// Reads a path to its end and leaves the pieces as they came.
    pub(crate) async fn gather(&self, path: &str) -> Result<Collected<Bytes>> {
        let response = self.open(Method::GET, path, "application/json", Bytes::new()).await?;
        let status = response.status();
        let body = response.into_body().collect().await?;
        if !status.is_success() {
            bail!("GET {path}: {status}: {}", String::from_utf8_lossy(&body.to_bytes()));
        }
        Ok(body)
    }

    /// Reads a path.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes> {
        self.send(Method::GET, path, "application/json", Bytes::new()).await
    }

    /// Posts JSON.
    pub(crate) async fn post(&self, path: &str, body: String) -> Result<Bytes> {
        self.send(Method::POST, path, "application/json", body.into()).await
    }
}
