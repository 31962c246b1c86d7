//! The authority that signs a cluster's certificates.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::PkiError;
use super::files::Files;
use super::identity::{self, CLOCK_SKEW, Identity};

const LIFETIME: Duration = Duration::days(3650);

/// An authority has its name, and the files that it is kept in.
#[derive(Clone, Copy)]
pub(super) struct Names {
    subject: &'static str,
    certificate: &'static str,
    key: &'static str,
}

/// Who signs what servers and clients of the cluster show.
pub(super) const CLUSTER: Names = Names { subject: "windlass-ca", certificate: "ca.crt", key: "ca.key" };
/// Who signs what the API server shows to servers that answer for groups of their own.
pub(super) const FRONT_PROXY: Names =
    Names { subject: "windlass-front-proxy-ca", certificate: "front-proxy-ca.crt", key: "front-proxy-ca.key" };

pub(super) struct Authority {
    certificate: String,
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn load_or_make(files: &Files, names: Names) -> Result<Self, PkiError> {
        match (files.read(names.certificate)?, files.read(names.key)?) {
            (Some(certificate), Some(key)) => match Self::load(files, names, certificate, &key)? {
                Some(authority) => Ok(authority),
                None => Self::make(files, names),
            },
            // Without its key an authority is of no use; the certificate is written last.
            _ => Self::make(files, names),
        }
    }

    /// The certificate, in PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The identity in the files `name`.crt and `name`.key; a new one if it is missing or does not hold.
    pub(super) fn identity(&self, files: &Files, name: &str, params: CertificateParams) -> Result<Identity, PkiError> {
        let (certificate_file, key_file) = (format!("{name}.crt"), format!("{name}.key"));
        if let (Some(certificate), Some(key)) = (files.read(&certificate_file)?, files.read(&key_file)?)
            && identity::holds(&certificate, &self.der, &params, OffsetDateTime::now_utc())
        {
            return Ok(Identity { certificate, key });
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        let identity = Identity { certificate, key: key.serialize_pem() };
        files.write(&key_file, &identity.key)?;
        files.write(&certificate_file, &identity.certificate)?;
        Ok(identity)
    }

    /// `None` if it ends soon.
    fn load(files: &Files, names: Names, certificate: String, key: &str) -> Result<Option<Self>, PkiError> {
        let der = identity::der_of(&certificate).ok_or_else(|| files.damaged(names.certificate, &"it is not PEM"))?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| files.damaged(names.certificate, &error))?;
        if !identity::lasts(&parsed, OffsetDateTime::now_utc()) {
            return Ok(None);
        }
        let key = KeyPair::from_pem(key).map_err(|error| files.damaged(names.key, &error))?;
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            // A crash between the two writes; nothing was signed by the new key yet.
            return Ok(None);
        }
        let issuer =
            Issuer::from_ca_cert_pem(&certificate, key).map_err(|error| files.damaged(names.certificate, &error))?;
        Ok(Some(Authority { der, issuer, certificate }))
    }

    fn make(files: &Files, names: Names) -> Result<Self, PkiError> {
        let now = OffsetDateTime::now_utc();
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = identity::name(names.subject, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.not_before = now - CLOCK_SKEW;
        params.not_after = now + LIFETIME;
        let key = KeyPair::generate()?;
        let key_pem = key.serialize_pem();
        let made = CertifiedIssuer::self_signed(params, key)?;
        files.write(names.key, &key_pem)?;
        files.write(names.certificate, &made.pem())?;
        let key = KeyPair::from_pem(&key_pem)?;
        let (certificate, der) = (made.pem(), made.der().to_vec());
        let issuer = Issuer::from_ca_cert_pem(&certificate, key)?;
        Ok(Authority { certificate, der, issuer })
    }
}
