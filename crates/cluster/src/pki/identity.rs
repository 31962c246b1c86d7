//! Certificates below the authority: what they say and whether they still hold.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use super::PkiError;

/// How long certificates hold.
const LIFETIME: Duration = Duration::days(365);
/// How long before their end they are renewed.
const RENEWAL: Duration = Duration::days(60);
/// Clocks may differ by this much.
pub(super) const CLOCK_SKEW: Duration = Duration::minutes(5);
/// The names of the API server inside of every cluster.
const SERVER_NAMES: [&str; 5] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"];

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Identity {
    /// What an API server at `addresses` shows when nobody gave it a certificate.
    ///
    /// # Errors
    /// If the system's randomness fails.
    pub fn self_signed(addresses: &[IpAddr]) -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let certificate = server(addresses)?.self_signed(&key)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// What the certificate of an API server at `addresses` says.
pub(super) fn server(addresses: &[IpAddr]) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
    params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
    params.distinguished_name = name("kube-apiserver", None);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(leaf(params))
}

/// What the certificate of a user says, who may be of a group.
pub(super) fn client(user: &str, group: Option<&str>) -> Result<CertificateParams, PkiError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = name(user, group);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(leaf(params))
}

pub(super) fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn leaf(mut params: CertificateParams) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - CLOCK_SKEW;
    params.not_after = now + LIFETIME;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    params
}

/// Whether a certificate says what `params` say, is signed by `authority` and does not end soon.
pub(super) fn holds(pem: &str, authority: &[u8], params: &CertificateParams, now: OffsetDateTime) -> bool {
    let Some(der) = der_of(pem) else { return false };
    let (Ok((_, certificate)), Ok((_, authority))) =
        (X509Certificate::from_der(&der), X509Certificate::from_der(authority))
    else {
        return false;
    };
    certificate.verify_signature(Some(authority.public_key())).is_ok()
        && lasts(&certificate, now + RENEWAL)
        && wanted_names(params) == names(&certificate)
}

/// Whether a certificate ends after `moment`.
pub(super) fn lasts(certificate: &X509Certificate<'_>, moment: OffsetDateTime) -> bool {
    certificate.validity().not_after.timestamp() > moment.unix_timestamp()
}

pub(super) fn der_of(pem: &str) -> Option<Vec<u8>> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
    Some(pem.contents)
}

fn wanted_names(params: &CertificateParams) -> BTreeSet<String> {
    let name = |san: &SanType| match san {
        SanType::DnsName(name) => Some(name.to_string()),
        SanType::IpAddress(address) => Some(address.to_string()),
        _ => None,
    };
    params.subject_alt_names.iter().filter_map(name).collect()
}

fn names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(alternatives) = extension.parsed_extension() else { continue };
        for name in &alternatives.general_names {
            match name {
                GeneralName::DNSName(name) => drop(names.insert((*name).to_owned())),
                GeneralName::IPAddress(bytes) => drop(names.insert(address(bytes))),
                _ => {}
            }
        }
    }
    names
}

fn address(bytes: &[u8]) -> String {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
    address.map(|address| address.to_string()).unwrap_or_default()
}
