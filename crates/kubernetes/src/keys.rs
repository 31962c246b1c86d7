//! Keys and certificates of a control plane, made anew for each.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::PlaneError;

/// How long certificates hold; such a control plane lives for a test or a day.
const LIFETIME: Duration = Duration::days(365);
const CLOCK_SKEW: Duration = Duration::minutes(5);
/// The names of the API server inside of every cluster.
const SERVER_NAMES: [&str; 5] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"];

/// A user by certificate.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The files of its certificate and key, without their endings.
    pub file: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its group.
    pub group: Option<&'a str>,
}

/// Everyone who is part of a control plane, and its administrator.
pub(crate) const USERS: [User<'static>; 4] = [
    User { file: "admin", name: "kubernetes-admin", group: Some("system:masters") },
    User { file: "controller-manager", name: "system:kube-controller-manager", group: None },
    User { file: "scheduler", name: "system:kube-scheduler", group: None },
    User { file: "kubelet-client", name: "kube-apiserver-kubelet-client", group: Some("system:masters") },
];

/// Keys and certificates in a folder: `ca.crt`, `server.crt`, `admin.crt` and so on, each with its key.
#[derive(Debug)]
pub struct Keys {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Keys {
    /// Makes them for an API server at `addresses`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn make(folder: &Path, addresses: &[Ipv4Addr]) -> Result<Self, PlaneError> {
        fs::create_dir_all(folder).map_err(PlaneError::file(folder))?;
        let mut authority = params("kubernetes", None)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = authority.self_signed(&key)?;
        write(folder, "ca", &certificate.pem(), &key)?;
        let keys = Self { folder: folder.to_owned(), issuer: Issuer::new(authority, key) };
        keys.server(addresses)?;
        for user in USERS {
            keys.user(user)?;
        }
        let accounts = KeyPair::generate()?;
        write(folder, "accounts", &accounts.public_key_pem(), &accounts)?;
        Ok(keys)
    }

    /// Makes the certificate of a user.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn user(&self, user: User<'_>) -> Result<(), PlaneError> {
        let mut params = params(user.name, user.group)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(user.file, params)
    }

    /// The file of this name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn server(&self, addresses: &[Ipv4Addr]) -> Result<(), PlaneError> {
        let mut params = params("kube-apiserver", None)?;
        params.subject_alt_names = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?.subject_alt_names;
        params.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(IpAddr::V4(*address))));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign("server", params)
    }

    fn sign(&self, file: &str, mut params: CertificateParams) -> Result<(), PlaneError> {
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write(&self.folder, file, &certificate.pem(), &key)
    }
}

fn params(name: &str, group: Option<&str>) -> Result<CertificateParams, PlaneError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - CLOCK_SKEW, now + LIFETIME);
    Ok(params)
}

/// Writes a certificate, or a public key, and the private key of it.
fn write(folder: &Path, name: &str, certificate: &str, key: &KeyPair) -> Result<(), PlaneError> {
    let (shown, secret) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
    fs::write(&shown, certificate).map_err(PlaneError::file(&shown))?;
    fs::write(&secret, key.serialize_pem())
        .and_then(|()| fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)))
        .map_err(PlaneError::file(&secret))
}
