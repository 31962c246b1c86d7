//! The authority that signs a cluster's certificates.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::PkiError;
use super::files::Files;
use super::identity::{self, CLOCK_SKEW, Identity};

/// How long an authority holds.
const LIFETIME: Duration = Duration::days(3650);
/// How long before its end it is renewed: whatever was signed by then, and whoever was told of it together with what was
/// signed, ends before the old certificate does.
const RENEWAL: Duration = Duration::days(730);

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
    /// The authority in its files; a new one if there is none. Long before its end it gets a new certificate for the same
    /// key, so that everything that it signed holds by the old one and by the new one.
    pub(super) fn load_or_make(files: &Files, names: Names, now: OffsetDateTime) -> Result<Self, PkiError> {
        let (Some(certificate), Some(key)) = (files.read(names.certificate)?, files.read(names.key)?) else {
            // Without its key an authority is of no use; the certificate is written last.
            return Self::make(files, names, &KeyPair::generate()?, now);
        };
        let key = KeyPair::from_pem(&key).map_err(|error| files.damaged(names.key, &error))?;
        let der = identity::der_of(&certificate).ok_or_else(|| files.damaged(names.certificate, &"it is not PEM"))?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|error| files.damaged(names.certificate, &error))?;
        // A crash between the two writes leaves a key that has signed nothing yet.
        let is_of_key = parsed.public_key().subject_public_key.data.as_ref() == key.public_key_raw();
        if !is_of_key || !identity::lasts(&parsed, now + RENEWAL) {
            return Self::make(files, names, &key, now);
        }
        let issuer =
            Issuer::from_ca_cert_pem(&certificate, key).map_err(|error| files.damaged(names.certificate, &error))?;
        Ok(Authority { der, issuer, certificate })
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

    /// A new certificate for `key`.
    fn make(files: &Files, names: Names, key: &KeyPair, now: OffsetDateTime) -> Result<Self, PkiError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = identity::name(names.subject, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.not_before = now - CLOCK_SKEW;
        params.not_after = now + LIFETIME;
        // No two certificates of one issuer may have the same number, and that of the key would be.
        params.serial_number = Some(SerialNumber::from(now.unix_timestamp().unsigned_abs()));
        let key_pem = key.serialize_pem();
        let made = CertifiedIssuer::self_signed(params, KeyPair::from_pem(&key_pem)?)?;
        files.write(names.key, &key_pem)?;
        files.write(names.certificate, &made.pem())?;
        let (certificate, der) = (made.pem(), made.der().to_vec());
        let issuer = Issuer::from_ca_cert_pem(&certificate, KeyPair::from_pem(&key_pem)?)?;
        Ok(Authority { certificate, der, issuer })
    }
}
