//! Store, API server, controllers and node put together: in this process for tests, as a daemon for people.

mod address;
mod directory;
mod error;
mod kubeconfig;
mod lock;
mod pki;

pub use address::AddressRange;
pub use directory::Directory;
pub use error::StartError;
pub use kubeconfig::Kubeconfig;
pub use lock::{Lock, holder};
pub use pki::{Identity, Pki, PkiError};
