//! The operator with everything going wrong that can: see `docs/explore.md`.

use memcached_operator::{Memcached, app};
use windlass::serde_json::json;
use windlass_testkit::Profile;
use windlass_testkit::explore::{Exploration, User};

/// How many plans the tests try; with `WINDLASS_PLANS=all` they try all.
const PLANS: usize = 20;

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
    let report = Exploration::of(app).profile(Profile::Workloads).plans(PLANS).run(life);
    println!("{report}");
    report.assert();
}
