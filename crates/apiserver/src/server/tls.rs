//! TLS: the server's certificate, which can be replaced, and the authority whose client certificates count.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier},
    sign::CertifiedKey,
};

/// How connections are secured.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
    shown: Arc<Shown>,
}

/// The certificate that new connections see.
#[derive(Debug)]
struct Shown(RwLock<Arc<CertifiedKey>>);

impl Shown {
    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Why connections cannot be secured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A text is not what it should be.
    #[error("the {0} cannot be read: {1}")]
    Pem(&'static str, rustls::pki_types::pem::Error),
    /// The certificate and the key do not fit, or are not usable.
    #[error("the certificate cannot be used: {0}")]
    Certificate(#[source] rustls::Error),
    /// The authority cannot check anybody.
    #[error("the authority of client certificates cannot be used: {0}")]
    Authority(#[source] VerifierBuilderError),
}

impl Tls {
    /// From PEM texts: the certificate chain, its key, and the authority for clients, who need no certificate.
    /// Without an authority no client certificate is asked for.
    ///
    /// # Errors
    /// A text is not PEM, or the parts do not fit together.
    pub fn new(certificates: &[u8], key: &[u8], client_authority: &[u8]) -> Result<Self, TlsError> {
        let shown = Arc::new(Shown(RwLock::new(certified(certificates, key)?)));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(client_authority) {
            let certificate = certificate.map_err(|error| TlsError::Pem("client authority", error))?;
            roots.add(certificate).map_err(TlsError::Certificate)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match roots.is_empty() {
            true => WebPkiClientVerifier::no_client_auth(),
            false => WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(TlsError::Authority)?,
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Certificate)?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::<Shown>::clone(&shown));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), shown })
    }

    /// Shows another certificate to those who connect from now on.
    ///
    /// # Errors
    /// A text is not PEM, or the certificate and the key do not fit together.
    pub fn show(&self, certificates: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let new = certified(certificates, key)?;
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The certificate that is shown, in DER.
    pub fn shown(&self) -> Vec<u8> {
        self.shown.current().cert.first().map(|certificate| certificate.to_vec()).unwrap_or_default()
    }
}

fn certified(certificates: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| TlsError::Pem("certificate", error))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Pem("key", error))?;
    let provider = rustls::crypto::ring::default_provider();
    CertifiedKey::from_der(chain, key, &provider).map(Arc::new).map_err(TlsError::Certificate)
}
