//! Certificates: how they are made, and what is read from them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

/// Clocks may differ by this many seconds.
const SKEW_SECONDS: i64 = 300;

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// From when to when a certificate holds, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Life {
    /// This many seconds from now on.
    pub(super) fn of(now: Timestamp, seconds: i64) -> Self {
        Self { from: now.as_second() - SKEW_SECONDS, until: now.as_second() + seconds }
    }

    /// When the certificate was made.
    pub(super) fn made(self) -> i64 {
        self.from + SKEW_SECONDS
    }
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) life: Life,
    pub(super) subject: String,
    pub(super) issuer: String,
    pub(super) names: BTreeSet<String>,
}

/// An authority of its own name.
pub(super) fn authority(life: Life) -> Result<Pair, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    let number = rand::random::<u64>() >> 1;
    params.distinguished_name = name(&format!("windlass-webhooks-{number:016x}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    (params.not_before, params.not_after) = (moment(life.from), moment(life.until));
    params.serial_number = Some(SerialNumber::from(number));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

/// A certificate for a server with these names and addresses, signed by `authority`.
pub(super) fn serving(authority: &Pair, names: &BTreeSet<String>, life: Life) -> Result<Pair, rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let mut params = CertificateParams::new(names.iter().cloned().collect::<Vec<_>>())?;
    params.distinguished_name = name("windlass-webhooks");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    (params.not_before, params.not_after) = (moment(life.from), moment(life.until));
    params.serial_number = Some(SerialNumber::from(rand::random::<u64>() >> 1));
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Pair { certificate, key: key.serialize_pem() })
}

/// What a certificate in PEM says; `None` if it is none.
pub(super) fn facts(pem: &str) -> Option<Facts> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
    let (_, certificate) = X509Certificate::from_der(&pem.contents).ok()?;
    let validity = certificate.validity();
    Some(Facts {
        life: Life { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() },
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        names: names(&certificate),
    })
}

/// Whether certificate and key belong together, as far as a signature by the key can be asked for.
pub(super) fn belong_together(pair: &Pair) -> bool {
    let Ok(key) = KeyPair::from_pem(&pair.key) else { return false };
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(pair.certificate.as_bytes()) else { return false };
    let Ok((_, certificate)) = X509Certificate::from_der(&pem.contents) else { return false };
    certificate.public_key().subject_public_key.data.as_ref() == key.public_key_raw()
}

fn names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else { continue };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => drop(found.insert((*name).to_owned())),
                GeneralName::IPAddress(bytes) => found.extend(address(bytes).map(|address| address.to_string())),
                _ => {}
            }
        }
    }
    found
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn moment(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
