//! Deployments with their ReplicaSets.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use windlass_testkit::Controller;
use windlass_testkit::explore::{Exploration, User, World};

use super::objects::{deployment, template};
use super::{of, survives};

/// It is made, gets another image, grows, and goes.
async fn life(user: User) {
    let mut web = deployment("web", 2, "one");
    web["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    user.create::<Deployment>(web).await;
    user.settle().await;
    user.patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}})).await;
    user.settle().await;
    user.patch::<Deployment>("web", json!({"spec": {"replicas": 3}})).await;
    user.settle().await;
    user.delete::<Deployment>("web").await;
}

/// Pods that are ready and are not on their way out.
fn available(world: &World) -> usize {
    let is_available = |pod: &&Pod| {
        let conditions = pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let mut ready = conditions.into_iter().filter(|one| one.type_ == "Ready" && one.status == "True");
        pod.metadata.deletion_timestamp.is_none() && ready.next().is_some()
    };
    world.all::<Pod>().iter().filter(is_available).count()
}

/// While the second image comes, the Pods of the first stay until others serve.
fn never_fewer(world: &World) -> Result<(), String> {
    let Some(web) = world.get::<Deployment>("web") else { return Ok(()) };
    let was_available = web.status.and_then(|status| status.available_replicas).unwrap_or(0) >= 2;
    let available = available(world);
    if was_available && available < 2 { Err(format!("only {available} of 2 are left")) } else { Ok(()) }
}

/// Never more Pods than wanted and one.
fn never_many(world: &World) -> Result<(), String> {
    let wanted: i32 = world.all::<ReplicaSet>().iter().filter_map(|set| set.spec.as_ref()?.replicas).sum();
    if wanted <= 4 { Ok(()) } else { Err(format!("{wanted} replicas are wanted in all")) }
}

/// What becomes history, and revisions that are counted, cannot be made again as they were; and the annotations of an old
/// ReplicaSet tell whether the user waited.
fn deployments() -> Exploration {
    let history = ["fresh", "delete", "delete-while-down", "user", "overtaken"];
    let exploration = of([Controller::Deployment, Controller::ReplicaSet]).without(history);
    exploration.invariant("as many as promised", never_fewer).invariant("no more than surge permits", never_many)
}

#[test]
fn a_deployment_rolls_out_whatever_happens() {
    survives(&deployments(), life);
}

/// Two replicas of one image.
async fn stands(user: User) {
    user.create::<Deployment>(deployment("web", 2, "one")).await;
    user.settle().await;
    user.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
}

#[test]
fn what_is_deleted_below_a_deployment_comes_back() {
    survives(&of([Controller::Deployment, Controller::ReplicaSet]), stands);
}
