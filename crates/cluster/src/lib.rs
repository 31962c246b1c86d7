//! Store, API server, controllers and node put together: in this process for tests, as a daemon for people.
//!
//! ```
//! use k8s_openapi::api::core::v1::Namespace;
//! use windlass_cluster::{Cluster, ClusterConfig, Profile, StartError};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), StartError> {
//! let cluster = Cluster::start(ClusterConfig::in_memory(Profile::Gc)).await?;
//! let namespaces: kube::Api<Namespace> = kube::Api::all(cluster.client());
//! assert!(namespaces.get("default").await.is_ok());
//! cluster.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod address;
mod cluster;
mod config;
mod directory;
mod error;
mod joined;
mod kubeconfig;
mod lock;
mod node;
mod pki;
mod renewal;
mod tasks;

pub use address::{ClusterRange, UnknownRange};
pub use cluster::Cluster;
pub use config::{AuditConfig, ClusterConfig, Isolation, Listen, PODS_DEFAULT, PODS_MAX, Profile, images_default};
pub use directory::Directory;
pub use error::StartError;
pub use joined::{JoinConfig, JoinedNode};
pub use kubeconfig::Kubeconfig;
pub use lock::holder;
pub use node::end_survivors;
pub use pki::{Identity, PkiError};
pub use tasks::Failure;
