//! Endpoints and EndpointSlices of Services.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::User;

use super::objects::deployment;
use super::{of, survives};

/// A Service whose Pods come, grow in number and go; then it points elsewhere, and goes.
async fn life(user: User) {
    user.create::<Service>(json!({"metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}))
        .await;
    user.settle().await;
    user.create::<Deployment>(deployment("web", 1, "one")).await;
    user.settle().await;
    user.patch::<Deployment>("web", json!({"spec": {"replicas": 2}})).await;
    user.settle().await;
    user.patch::<Service>("web", json!({"spec": {"selector": {"app": "other"}}})).await;
    user.settle().await;
    user.delete::<Service>("web").await;
}

#[test]
fn a_service_finds_its_pods_whatever_happens() {
    survives(&of([Controller::Endpoints]), life);
}
