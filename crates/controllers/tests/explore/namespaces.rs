//! Namespaces and what each has.

use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::User;

use super::objects::deployment;
use super::{of, survives};

/// A namespace with content comes, goes, and comes again.
async fn life(user: User) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    user.create_object(namespace.clone()).await;
    let in_team =
        |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "namespace": "team"}});
    user.create_object(in_team("ConfigMap")).await;
    user.create_object(in_team("Secret")).await;
    user.settle().await;
    let mut web = deployment("web", 1, "one");
    (web["apiVersion"], web["kind"]) = ("apps/v1".into(), "Deployment".into());
    web["metadata"]["namespace"] = json!("team");
    user.create_object(web).await;
    user.settle().await;
    user.delete_object(&namespace).await;
    user.settle().await;
    user.create_object(namespace.clone()).await;
    user.settle().await;
}

#[test]
fn a_namespace_goes_with_its_content_whatever_happens() {
    survives(&of([Controller::Namespace, Controller::ServiceAccount]), life);
}
