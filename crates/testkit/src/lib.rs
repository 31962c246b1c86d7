//! A Kubernetes-compatible cluster inside a test: no TCP, no disk, a clock in the test's hand.
//!
//! Every [`TestCluster`] is an API server with controllers of its own, in this process. It starts within milliseconds
//! and shares nothing with others, so every test has one, and tests run side by side.
//!
//! ```
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//! use kube::api::DeleteParams;
//! use serde_json::json;
//! use windlass_testkit::TestCluster;
//!
//! # #[tokio::main]
//! # async fn main() {
//! let cluster = TestCluster::start().await;
//! cluster.create::<ConfigMap>(json!({"metadata": {"name": "settings"}, "data": {"size": "3"}})).await;
//!
//! // Namespaces are emptied and garbage is collected, as on a real cluster.
//! let before = cluster.snapshot();
//! let config_maps = cluster.api::<ConfigMap>();
//! config_maps.delete("settings", &DeleteParams::default()).await.unwrap();
//!
//! // What a test did can be undone; watchers see it happen.
//! cluster.reset(&before).await;
//! assert!(config_maps.get("settings").await.is_ok());
//! # let _: kube::Api<Namespace> = kube::Api::all(cluster.client());
//! # }
//! ```

#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../docs/explore.md")]
    struct Explore;
    #[doc = include_str!("../../../docs/campaigns.md")]
    struct Campaigns;
}

mod builder;
pub mod campaign;
mod clock;
mod cluster;
mod definitions;
pub mod explore;
mod kubernetes;
mod lab;
pub mod linearizability;
mod manifests;
mod operation;
mod wait;

pub use builder::Builder;
pub use campaign::Campaign;
pub use clock::TestClock;
pub use cluster::{Kind, Snapshot, TestCluster};
pub use explore::explore;
pub use kubernetes::KUBERNETES;
pub use operation::Operation;
pub use wait::{PATIENCE, until, until_gone};
pub use windlass_cluster::{Cluster, Kubeconfig, Profile};
pub use windlass_controllers::{Name as Controller, Set as Controllers};
