//! Disruption budgets and quotas.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::User;

use super::objects::deployment;
use super::{of, survives};

/// A budget and a quota see Pods come and go.
async fn life(user: User) {
    user.create::<PodDisruptionBudget>(json!({"metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    user.create::<ResourceQuota>(json!({"metadata": {"name": "some"}, "spec": {"hard": {"pods": "5"}}})).await;
    user.create::<Deployment>(deployment("web", 2, "one")).await;
    user.settle().await;
    user.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
    user.settle().await;
    user.patch::<PodDisruptionBudget>("web", json!({"spec": {"minAvailable": "100%"}})).await;
    user.patch::<ResourceQuota>("some", json!({"spec": {"hard": {"pods": "3"}}})).await;
    user.settle().await;
    user.delete::<PodDisruptionBudget>("web").await;
    user.delete::<ResourceQuota>("some").await;
}

#[test]
fn budgets_count_whatever_happens() {
    survives(&of([Controller::Disruption, Controller::ResourceQuota]), life);
}
