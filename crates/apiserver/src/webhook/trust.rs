//! Whose certificates count: those that the authorities of a webhook's configuration signed.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

/// Why nobody can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("unable to load root certificates: {0}")]
    Bundle(String),
    #[error("no root certificates: {0}")]
    Roots(String),
    #[error("the identity of this server cannot be used: {0}")]
    Identity(String),
}

/// The TLS side of a client that trusts `ca_bundle`, PEM in base64, or else what the system trusts.
pub(super) fn tls(ca_bundle: Option<&str>) -> Result<ClientConfig, TrustError> {
    extension_tls(ca_bundle, false, None)
}

/// The same, which shows `identity` (certificate and key in PEM) and may trust anybody.
pub(crate) fn extension_tls(
    ca_bundle: Option<&str>,
    trusts_anybody: bool,
    identity: Option<(&str, &str)>,
) -> Result<ClientConfig, TrustError> {
    let named = ca_bundle.map(certificates).transpose()?.unwrap_or_default();
    let provider = Arc::new(ring::default_provider());
    let inner = if trusts_anybody { None } else { Some(webpki(&named, &provider)?) };
    let verifier = Verifier { inner, named, provider: Arc::clone(&provider) };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| TrustError::Roots(error.to_string()))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let Some((certificate, key)) = identity else { return Ok(builder.with_no_client_auth()) };
    let unusable = |error: &dyn std::fmt::Display| TrustError::Identity(error.to_string());
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| unusable(&error))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| unusable(&error))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| unusable(&error))
}

fn webpki(
    named: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TrustError> {
    let roots = if named.is_empty() { system_roots() } else { roots(named)? };
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    verifier.build().map_err(|error| TrustError::Roots(error.to_string()))
}

/// Whether a `caBundle` can be used.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_bundle(ca_bundle: &str) -> Result<(), TrustError> {
    roots(&certificates(ca_bundle)?).map(|_| ())
}

/// The certificates of a bundle; one of white space stands for none, as some write it to be filled in later.
fn certificates(ca_bundle: &str) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let pem = base64::engine::general_purpose::STANDARD.decode(ca_bundle);
    let pem = pem.map_err(|error| TrustError::Bundle(error.to_string()))?;
    if pem.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match found.map_err(|error| TrustError::Bundle(error.to_string()))? {
        none if none.is_empty() => Err(TrustError::Bundle("the caBundle holds no certificate".to_owned())),
        some => Ok(some),
    }
}

fn roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| TrustError::Bundle(error.to_string()))?;
    }
    Ok(roots)
}

/// What the system trusts, read once.
fn system_roots() -> RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    };
    ROOTS.get_or_init(read).clone()
}

/// As webpki has it, except that a certificate that the configuration itself names is fine: many webhooks sign their
/// own, and mark it as an authority, and clients written in Go accept that.
#[derive(Debug)]
struct Verifier {
    /// `None` trusts anybody.
    inner: Option<Arc<WebPkiServerVerifier>>,
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        let verified = inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let Err(error) = verified else { return verified };
        if !self.named.iter().any(|named| named == end_entity) || !is_valid_at(end_entity, now) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn is_valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return false };
    let validity = parsed.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now)
}
