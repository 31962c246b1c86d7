//! A cluster with all controllers.

use windlass_testkit::{Profile, TestCluster};

pub(crate) use super::objects::{deployment, template};

/// A cluster with all controllers and a node that only seems to run Pods.
pub(crate) async fn workloads() -> TestCluster {
    TestCluster::builder().profile(Profile::Workloads).start().await
}
