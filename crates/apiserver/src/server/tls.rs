//! The certificate that the server shows, and the authority whose client certificates it believes.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// What connections are secured with.
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate or key is not PEM.
    #[error("a certificate or key is not PEM: {0}")]
    Pem(String),
    /// The authority cannot be used.
    #[error("the authority of client certificates cannot be used")]
    Authority(#[from] VerifierBuilderError),
    /// The certificate and the key cannot be used.
    #[error("the server's certificate and key cannot be used")]
    Identity(#[from] rustls::Error),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// A server with a certificate and key that believes the client certificates of `authority`, all in PEM.
    ///
    /// Clients may come without a certificate; one that `authority` did not sign ends the connection.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub fn new(certificate: &str, key: &str, authority: &str) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority)? {
            roots.add(certificate)?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| TlsError::Pem(error.to_string()))?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(certificates(certificate)?, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if all.is_empty() => Err(TlsError::Pem("there is no certificate in it".to_owned())),
        outcome => outcome.map_err(|error| TlsError::Pem(error.to_string())),
    }
}
