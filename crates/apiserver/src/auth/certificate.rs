//! The user that a client certificate stands for.

use x509_parser::prelude::{FromDer, X509Certificate};

use super::User;

/// Why a verified certificate names no user.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The bytes are not a certificate.
    #[error("the client certificate cannot be read: {0}")]
    Malformed(String),
    /// There is no user without a common name.
    #[error("the client certificate has no common name")]
    NoCommonName,
}

/// The user of a certificate that was already verified: its common name, and its organizations as groups.
pub fn user_of_certificate(der: &[u8]) -> Result<User, CertificateError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|error| CertificateError::Malformed(error.to_string()))?;
    let subject = certificate.subject();
    let name = subject
        .iter_common_name()
        .find_map(|part| part.as_str().ok())
        .filter(|name| !name.is_empty())
        .ok_or(CertificateError::NoCommonName)?;
    let groups = subject.iter_organization().filter_map(|part| part.as_str().ok());
    Ok(User::new(name, groups))
}
