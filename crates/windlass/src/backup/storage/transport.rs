//! The way to an object storage: the HTTP and TLS that the rest of the program uses, with the trust that was asked for.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody, HttpService,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::StorageError;

/// A storage that does not take a connection by then is away.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// A request that is not answered by then is given up; a part of an upload is sent in that time, too.
const ANSWER_MAX: Duration = Duration::from_secs(120);
/// How long a connection is kept that nobody uses.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Requests over connections that are kept.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, HttpRequestBody>,
}

impl Transport {
    /// A way that trusts these authorities, or those of the machine.
    pub(super) fn trusting(certificates: Option<&str>) -> Result<Self, StorageError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StorageError::Settings(error.to_string()))?
            .with_root_certificates(roots(certificates)?)
            .with_no_client_auth();
        let mut plain = HttpConnector::new();
        plain.enforce_http(false);
        plain.set_connect_timeout(Some(CONNECT_MAX));
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(plain);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .build(connector);
        Ok(Self { client })
    }
}

fn roots(certificates: Option<&str>) -> Result<RootCertStore, StorageError> {
    let mut roots = RootCertStore::empty();
    let Some(text) = certificates else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let unreadable = || StorageError::Settings("caCertificate has no certificate that can be read (PEM)".into());
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.map_err(|_| unreadable())?).map_err(|_| unreadable())?;
    }
    if roots.is_empty() { Err(unreadable()) } else { Ok(roots) }
}

impl object_store::client::HttpConnector for Transport {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Transport {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let answer = tokio::time::timeout(ANSWER_MAX, self.client.request(request)).await;
            let answer = answer.map_err(|late| HttpError::new(HttpErrorKind::Timeout, late))?;
            let answer = answer.map_err(|error| {
                let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Interrupted };
                HttpError::new(kind, error)
            })?;
            let (parts, body) = answer.into_parts();
            let body = body.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error));
            Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
        })
    }
}
