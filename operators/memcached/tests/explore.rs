//! The operator with everything going wrong that can: see `docs/explore.md`.

use std::time::Duration;

use memcached_operator::{Memcached, app};
use windlass::k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec};
use windlass::serde_json::json;
use windlass_testkit::Profile;
use windlass_testkit::explore::{self, Exploration, User};

/// How many plans the tests try; with `WINDLASS_PLANS=all` they try all.
const PLANS: usize = 12;
/// Of longer scenarios.
const BAD_PLANS: usize = 4;
/// More than the minute in which a revision proves itself.
const PROOF: Duration = Duration::from_secs(75);

/// A cluster is made, grows, gets another image, and goes.
async fn life(user: User) {
    user.create::<Memcached>(json!({"metadata": {"name": "cache"}, "spec": {"size": 1}})).await;
    user.settle().await;
    user.patch::<Memcached>("cache", json!({"spec": {"size": 2}})).await;
    user.settle().await;
    user.patch::<Memcached>("cache", json!({"spec": {"image": "memcached:1.7"}})).await;
    user.settle().await;
    user.delete::<Memcached>("cache").await;
}

#[test]
fn no_fault_keeps_a_cluster_from_what_is_wanted() {
    let report = Exploration::of(app).profile(Profile::Workloads).settles_after(PROOF).plans(PLANS).run(life);
    println!("{report}");
    report.assert();
}

const BAD: [&str; 2] = ["memcached:does-not-exist", "memcached:exits-at-once"];

/// An image that is not there is asked for, then one whose program fails, then one that is well.
async fn bad_upgrades(user: User) {
    let image = |image: &str| json!({"spec": {"image": image}});
    user.create::<Memcached>(json!({"metadata": {"name": "cache"}, "spec": {"size": 2}})).await;
    user.settle().await;
    user.patch::<Memcached>("cache", image(BAD[0])).await;
    user.settle().await;
    user.patch::<Memcached>("cache", json!({"spec": {"size": 3}})).await;
    user.settle().await;
    user.patch::<Memcached>("cache", image(BAD[1])).await;
    user.settle().await;
    user.patch::<Memcached>("cache", image("memcached:1.7")).await;
    user.settle().await;
    user.delete::<Memcached>("cache").await;
}

/// While a bad image is asked for and a good one is known, the good one is not scaled down.
fn keeps_what_is_well(world: &explore::World) -> Result<(), String> {
    let Some(memcached) = world.get::<Memcached>("cache") else { return Ok(()) };
    let is_bad = memcached.spec.image.is_some_and(|image| BAD.contains(&image.as_str()));
    let good = memcached.status.and_then(|status| status.upgrade?.last_known_good);
    let sets = world.all::<ReplicaSet>().into_iter().filter_map(|set| set.spec);
    let of_good = sets.filter(|set| good.as_ref().is_some_and(|good| image_of(set).as_ref() == Some(&good.version)));
    match of_good.filter_map(|set| set.replicas).find(|replicas| is_bad && *replicas < 2) {
        Some(replicas) => Err(format!("{replicas} Pods are left")),
        None => Ok(()),
    }
}

fn image_of(set: &ReplicaSetSpec) -> Option<String> {
    set.template.as_ref()?.spec.as_ref()?.containers.first()?.image.clone()
}

#[test]
fn no_fault_keeps_a_bad_upgrade_from_being_taken_back() {
    let report = Exploration::of(app)
        .profile(Profile::Workloads)
        .settles_after(PROOF)
        .plans(BAD_PLANS)
        // Without a history there is nothing to go back to.
        .without(["fresh"])
        .invariant("a bad upgrade takes away no Pod that is well", keeps_what_is_well)
        .run(bad_upgrades);
    println!("{report}");
    report.assert();
}
