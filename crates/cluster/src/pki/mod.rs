//! Keys and certificates of one cluster: made once, renewed before they end.

mod authority;
mod files;
mod identity;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use time::OffsetDateTime;

use authority::{Authority, CLUSTER, FRONT_PROXY};
use files::Files;

pub use identity::Identity;

/// Who the API server is to servers that answer for groups of their own.
const FRONT_PROXY_NAME: &str = "front-proxy-client";

/// The keys and certificates of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct Pki {
    /// The certificate of the authority, in PEM.
    pub(crate) authority: String,
    /// What the API server shows.
    pub(crate) server: Identity,
    /// Who may do everything.
    pub(crate) admin: Identity,
    /// The certificate of the authority that signs what the API server shows to other servers, in PEM.
    pub(crate) front_proxy_authority: String,
    /// What it shows to them.
    pub(crate) front_proxy: Identity,
    /// The key that signs service-account tokens, in PKCS #8 DER.
    pub(crate) token_key: Vec<u8>,
}

/// Why keys and certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} is damaged: {reason}; restore it, or remove the directory that holds it to make new keys", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
}

impl Pki {
    /// Keys and certificates that live as long as the process, for an API server at `addresses`.
    ///
    /// # Errors
    /// If the system's randomness fails.
    pub(crate) fn in_memory(addresses: &[IpAddr]) -> Result<Self, PkiError> {
        Self::made(&Files::none(), addresses)
    }

    /// The keys and certificates in a directory; those that are missing, end soon or do not fit are made.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub(crate) fn in_directory(dir: &Path, addresses: &[IpAddr]) -> Result<Self, PkiError> {
        Self::made(&Files::at(dir)?, addresses)
    }

    fn made(files: &Files, addresses: &[IpAddr]) -> Result<Self, PkiError> {
        let now = OffsetDateTime::now_utc();
        let authority = Authority::load_or_make(files, CLUSTER, now)?;
        let server = authority.identity(files, "server", identity::server(addresses)?)?;
        let admin = authority.identity(files, "admin", identity::client("windlass-admin", Some("system:masters"))?)?;
        let proxies = Authority::load_or_make(files, FRONT_PROXY, now)?;
        let front_proxy = proxies.identity(files, "front-proxy-client", identity::client(FRONT_PROXY_NAME, None)?)?;
        Ok(Pki {
            authority: authority.certificate().to_owned(),
            server,
            admin,
            front_proxy_authority: proxies.certificate().to_owned(),
            front_proxy,
            token_key: token_key(files)?,
        })
    }
}

fn token_key(files: &Files) -> Result<Vec<u8>, PkiError> {
    const NAME: &str = "service-account.key";
    if let Some(pem) = files.read(NAME)? {
        let key = KeyPair::from_pem(&pem).map_err(|error| files.damaged(NAME, &error))?;
        return Ok(key.serialize_der());
    }
    let key = KeyPair::generate()?;
    files.write(NAME, &key.serialize_pem())?;
    Ok(key.serialize_der())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use time::Duration;
    use x509_parser::prelude::{FromDer, X509Certificate};

    fn address(text: &str) -> Vec<IpAddr> {
        vec![text.parse().unwrap()]
    }

    #[test]
    fn keys_are_made_once() {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("pki");
        let first = Pki::in_directory(&dir, &address("127.64.0.1")).unwrap();
        let second = Pki::in_directory(&dir, &address("127.64.0.1")).unwrap();
        assert_eq!(first.authority, second.authority);
        assert_eq!(first.server.certificate, second.server.certificate);
        assert_eq!(first.admin.key, second.admin.key);
        assert_eq!(first.token_key, second.token_key);
    }

    #[test]
    fn a_certificate_that_does_not_fit_is_renewed_alone() {
        let outer = tempfile::tempdir().unwrap();
        let first = Pki::in_directory(outer.path(), &address("127.64.0.1")).unwrap();
        let moved = Pki::in_directory(outer.path(), &address("127.65.0.1")).unwrap();
        assert_eq!(first.authority, moved.authority);
        assert_ne!(first.server.certificate, moved.server.certificate);
        assert_eq!(first.admin.certificate, moved.admin.certificate);

        fs::remove_file(outer.path().join("ca.crt")).unwrap();
        let other = Pki::in_directory(outer.path(), &address("127.65.0.1")).unwrap();
        assert_ne!(moved.authority, other.authority);
        assert_ne!(moved.admin.certificate, other.admin.certificate);
        assert_eq!(moved.token_key, other.token_key);
    }

    #[test]
    fn the_admin_is_a_master() {
        let pki = Pki::in_memory(&address("127.64.0.1")).unwrap();
        let der = identity::der_of(&pki.admin.certificate).unwrap();
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        let groups: Vec<_> = certificate.subject().iter_organization().map(|part| part.as_str().unwrap()).collect();
        assert_eq!(groups, ["system:masters"]);
    }

    #[test]
    fn damage_is_named() {
        let outer = tempfile::tempdir().unwrap();
        Pki::in_directory(outer.path(), &address("127.64.0.1")).unwrap();
        fs::write(outer.path().join("service-account.key"), "garbage").unwrap();
        let error = Pki::in_directory(outer.path(), &address("127.64.0.1")).unwrap_err();
        assert!(error.to_string().contains("service-account.key is damaged"), "{error}");
    }

    #[test]
    fn certificates_are_renewed_before_they_end() {
        let params = identity::client("ann", Some("ops")).unwrap();
        let now = OffsetDateTime::now_utc();
        let authority = Authority::load_or_make(&Files::none(), CLUSTER, now).unwrap();
        let made = authority.identity(&Files::none(), "ann", params.clone()).unwrap();
        let der = identity::der_of(authority.certificate()).unwrap();
        assert!(identity::holds(&made.certificate, &der, &params, now));
        assert!(!identity::holds(&made.certificate, &der, &params, now + time::Duration::days(320)));
        let strange = Authority::load_or_make(&Files::none(), CLUSTER, now).unwrap();
        let strange = identity::der_of(strange.certificate()).unwrap();
        assert!(!identity::holds(&made.certificate, &strange, &params, now));
    }

    #[test]
    fn an_authority_is_renewed_long_before_its_end_and_what_it_signed_holds() {
        let outer = tempfile::tempdir().unwrap();
        let files = Files::at(outer.path()).unwrap();
        let now = OffsetDateTime::now_utc();
        let past = now - Duration::days(3000);
        let old = Authority::load_or_make(&files, CLUSTER, past).unwrap();
        let params = identity::client("ann", None).unwrap();
        let signed = old.identity(&files, "ann", params.clone()).unwrap();
        let kept = Authority::load_or_make(&files, CLUSTER, past + Duration::days(2900)).unwrap();
        assert_eq!(kept.certificate(), old.certificate());

        let new = Authority::load_or_make(&files, CLUSTER, now).unwrap();
        assert_ne!(new.certificate(), old.certificate());
        assert_eq!(new.identity(&files, "ann", params.clone()).unwrap().certificate, signed.certificate);
        let later = new.identity(&files, "bob", params.clone()).unwrap();
        for authority in [&old, &new] {
            let der = identity::der_of(authority.certificate()).unwrap();
            assert!(identity::holds(&signed.certificate, &der, &params, now));
            assert!(identity::holds(&later.certificate, &der, &params, now));
        }
        let numbers = [&old, &new].map(|authority| {
            let der = identity::der_of(authority.certificate()).unwrap();
            let (_, certificate) = X509Certificate::from_der(&der).unwrap();
            (certificate.raw_serial_as_string(), certificate.subject().to_string())
        });
        assert_ne!(numbers[0].0, numbers[1].0);
        assert_eq!(numbers[0].1, numbers[1].1);
    }
}
