//! DaemonSets.

use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::User;

use super::objects::template;
use super::{of, survives};

/// It is made, gets another image, leaves a node, and goes.
async fn life(user: User) {
    user.create::<DaemonSet>(json!({"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "one")}}))
        .await;
    user.settle().await;
    user.patch::<DaemonSet>("agent", json!({"spec": {"template": template("agent", "two")}})).await;
    user.settle().await;
    let one_node = json!({"kubernetes.io/hostname": "fake-node-0"});
    user.patch::<DaemonSet>("agent", json!({"spec": {"template": {"spec": {"nodeSelector": one_node}}}})).await;
    user.settle().await;
    user.delete::<DaemonSet>("agent").await;
}

#[test]
fn a_daemon_set_is_on_its_nodes_whatever_happens() {
    // Revisions are history.
    let exploration = of([Controller::DaemonSet]).nodes(2).without(["fresh", "delete", "delete-while-down"]);
    survives(&exploration, life);
}
