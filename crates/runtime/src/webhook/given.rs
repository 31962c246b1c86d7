//! Certificates that somebody else makes and renews: files, as cert-manager and managers of operators mount them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::certificates::Pair;

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// A larger file is no certificate.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A folder with a certificate and its key.
pub(super) struct Given {
    pub(super) folder: PathBuf,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum GivenError {
    #[error("cannot read {path}: {source}; mount the Secret with the certificate there, or let the operator make its own (--webhooks=cluster)", path = .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Given {
    /// The certificate and the key, as they are now.
    pub(super) async fn read(&self) -> Result<Pair, GivenError> {
        let (certificate, key) = (self.folder.join(CERTIFICATE), self.folder.join(KEY));
        let read = move || Ok(Pair { certificate: text(&certificate)?, key: text(&key)? });
        tokio::task::spawn_blocking(read).await.expect("reading a file does not panic")
    }
}

fn text(path: &Path) -> Result<String, GivenError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map(|_| text).map_err(|source| GivenError::Read { path: path.to_path_buf(), source })
}
