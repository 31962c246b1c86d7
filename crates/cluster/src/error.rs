//! Why a cluster cannot start, in words that say what to do.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use windlass_store::OpenError;

use crate::pki::PkiError;

/// Why a cluster cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another Windlass uses the directory.
    #[error("{} is in use by another Windlass{}; stop it with `windlass down`, or choose another directory with --dir", dir.display(), process(*pid))]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process that uses it, if it is known.
        pid: Option<u32>,
    },
    /// The directory may not be written to.
    #[error("no permission to use {}; choose a directory of your own with --dir", path.display())]
    Permission {
        /// What may not be used.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is something else at its place.
    #[error("{} is not a directory; choose another with --dir", path.display())]
    NotADirectory {
        /// What is there.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space left on the disk for {}; free some space and start again", path.display())]
    NoSpace {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file cannot be used for another reason.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The audit log cannot be written.
    #[error(transparent)]
    AuditLog(#[from] windlass_apiserver::audit::AuditLogError),
    /// The audit policy cannot be used.
    #[error("{}: {source}", path.display())]
    AuditPolicy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: windlass_apiserver::audit::PolicyError,
    },
    /// Somebody else listens there.
    #[error("{address} is in use by another process; stop it, or choose another port with --port")]
    PortInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another port with --port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Pods cannot have networks of their own.
    #[error(transparent)]
    Network(#[from] windlass_node::network::NetworkError),
    /// Containers cannot be run by runc.
    #[error(transparent)]
    Runc(#[from] windlass_node::runc::RuncError),
    /// The API server that a node is to join cannot be asked.
    #[error("the API server cannot be used: {0}")]
    Api(#[source] kube::Error),
    /// The address of the API server is not known.
    #[error("{url} leads to no IPv4 address; name another server in the kubeconfig")]
    UnknownApi {
        /// The server of the kubeconfig.
        url: String,
    },
    /// Pods would not reach the API server.
    #[error(
        "Pods with networks of their own do not reach the API server at {address}; name another server in the kubeconfig, or use --isolation sandbox"
    )]
    UnreachableApi {
        /// Where it is.
        address: SocketAddr,
    },
    /// The cluster does not say which addresses Services have.
    #[error("the cluster has no ServiceCIDR of IPv4 addresses; Kubernetes 1.33 and later have one")]
    NoServiceRange,
    /// The node cannot be asked anything.
    #[error("the node's port cannot be secured: {0}")]
    Door(String),
    /// The cluster was made with other addresses.
    #[error(
        "the objects of {} have addresses of {range}: start it with {}, or make it anew with `windlass down --purge`",
        dir.display(), options(*range)
    )]
    OtherRange {
        /// The directory.
        dir: PathBuf,
        /// The range that the cluster has.
        range: crate::ClusterRange,
    },
    /// All ranges of addresses are taken.
    #[error(
        "port {port} is in use in every range that a cluster can have, or the ranges are in use; choose others with --port or \
         --pod-network"
    )]
    NoRange {
        /// The port.
        port: u16,
    },
    /// Keys and certificates cannot be made.
    #[error(transparent)]
    Pki(PkiError),
    /// The store cannot be opened.
    #[error("{0}; restore it from a copy, or start anew with `windlass down --purge`")]
    Store(OpenError),
    /// The key of service-account tokens cannot be used.
    #[error(transparent)]
    TokenKey(#[from] windlass_apiserver::auth::JwtError),
    /// Connections cannot be secured.
    #[error(transparent)]
    Tls(#[from] windlass_apiserver::server::TlsError),
    /// The node cannot start.
    #[error(transparent)]
    Node(#[from] windlass_node::NodeError),
    /// A node keeps Pods and logs on disk.
    #[error("a cluster in memory has no place for Pods; give it a directory, or choose another profile")]
    NodeNeedsDirectory,
    /// The objects of a new cluster cannot be written.
    #[error("cannot write the first objects: {0}")]
    Bootstrap(#[from] windlass_store::CommitError),
}

impl StartError {
    /// The error for a failed access to `path`.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Permission { path, source },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path, source },
            _ => Self::File { path, source },
        }
    }
}

impl From<PkiError> for StartError {
    fn from(error: PkiError) -> Self {
        match error {
            PkiError::File { path, source } => Self::file(&path, source),
            other => Self::Pki(other),
        }
    }
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::InUse { path } => {
                Self::InUse { dir: path.parent().map(Path::to_owned).unwrap_or(path), pid: None }
            }
            OpenError::Permission { path, source }
            | OpenError::NoSpace { path, source }
            | OpenError::Io { path, source } => Self::file(&path, source),
            other @ OpenError::Corrupt { .. } => Self::Store(other),
        }
    }
}

/// The options that a cluster with a range is started with.
fn options(range: crate::ClusterRange) -> String {
    match range.has_networks() {
        false => "--isolation sandbox".to_owned(),
        true => format!("--isolation namespaces (or runc) --pod-network {range}"),
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}
