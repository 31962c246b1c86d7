//! A cluster with all controllers.

use k8s_openapi::api::core::v1::ServiceAccount;
use windlass_testkit::{Profile, TestCluster};

pub(crate) use super::objects::{deployment, template};

/// A cluster with all controllers and a node that only seems to run Pods.
pub(crate) async fn workloads() -> TestCluster {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    // Without an account there are no Pods.
    cluster.until("default", |_: &ServiceAccount| true).await;
    cluster
}
