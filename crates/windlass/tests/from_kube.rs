//! An operator on `kube::runtime::Controller` moves to the runtime step by step, and its users notice nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../examples/from-kube/before.rs"]
mod before;
#[path = "../examples/from-kube/kinds.rs"]
mod kinds;
#[path = "../examples/from-kube/step1.rs"]
mod step1;
#[path = "../examples/from-kube/step2.rs"]
mod step2;
#[path = "../examples/from-kube/step3.rs"]
mod step3;

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kinds::{NAME, Page, Team};
use kube::api::DeleteParams;
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::Program;
use windlass::runtime::Manager;
use windlass::runtime::tap::Tap;
use windlass_testkit::TestCluster;

/// What the users of the operator rely on, in every step.
async fn serves(cluster: &TestCluster, step: &str) {
    let (page, team) = (format!("page-of-{step}"), format!("team-of-{step}"));
    cluster.create::<Page>(json!({"metadata": {"name": page}, "spec": {"title": "A Page", "text": "one"}})).await;
    cluster.create::<Team>(json!({"metadata": {"name": team}, "spec": {"motto": "go"}})).await;
    let says =
        |html: &'static str| move |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["index.html"] == html);
    cluster.until(&page, says("<h1>A Page</h1>one")).await;
    let has_path = |page: &Page| page.status.as_ref().is_some_and(|status| status.path == "/a-page");
    cluster.until(&page, has_path).await;

    cluster.patch::<Page>(&page, json!({"spec": {"text": "two"}})).await;
    cluster.until(&page, says("<h1>A Page</h1>two")).await;
    cluster.patch::<ConfigMap>(&page, json!({"data": {"index.html": "spoiled"}})).await;
    cluster.until(&page, says("<h1>A Page</h1>two")).await;

    let motto =
        |account: &ServiceAccount| account.annotations().get("site.example.com/motto").is_some_and(|it| it == "go");
    let old = cluster.until(&team, motto).await.uid();
    cluster.api::<ServiceAccount>().delete(&team, &DeleteParams::default()).await.unwrap();
    cluster.until(&team, |account: &ServiceAccount| account.uid() != old && motto(account)).await;

    cluster.api::<Page>().delete(&page, &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<ConfigMap>(&page).await;
}

/// Runs `manager`, has it serve, and ends it; what it called is then in its journal.
async fn works(cluster: &TestCluster, step: &str, manager: Manager) -> Tap {
    let (tap, stop) = (manager.tap().clone(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    serves(cluster, step).await;
    assert!(holder(cluster).await.is_some(), "{step}: one replica works, by its lease");
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(holder(cluster).await, None, "{step}: the lease is given back");
    tap
}

async fn holder(cluster: &TestCluster) -> Option<String> {
    cluster.api::<Lease>().get(NAME).await.unwrap().spec.and_then(|spec| spec.holder_identity)
}

/// How often a resource was written, by the journal.
fn writes(tap: &Tap, resource: &str) -> usize {
    let entries = tap.journal().entries();
    entries.iter().filter(|entry| entry.call.is_write() && entry.call.resource == resource).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_on_kube_moves_step_by_step_and_its_users_notice_nothing() {
    let cluster = TestCluster::start().await;
    cluster.define([Page::crd(), Team::crd()]).await;
    cluster.create::<Page>(json!({"metadata": {"name": "old"}, "spec": {"title": "Old", "text": "page"}})).await;

    let stop = CancellationToken::new();
    let running = tokio::spawn(before::run(cluster.client(), stop.clone()));
    serves(&cluster, "before").await;
    let made = cluster.until("old", |_: &ConfigMap| true).await;
    stop.cancel();
    running.await.unwrap().unwrap();

    for (step, manager) in [("step1", step1::manager(cluster.client())), ("step2", step2::manager(cluster.client()))] {
        let tap = works(&cluster, step, manager).await;
        assert!(
            writes(&tap, "configmaps") > 0 && writes(&tap, "serviceaccounts") > 0,
            "{step}: the tap sees all calls"
        );
    }

    cluster.define(step3::app().crds()).await;
    let tap = works(&cluster, "step3", step3::manager(cluster.client())).await;
    assert!(writes(&tap, "serviceaccounts") > 0);
    let is_ready = |page: &step3::Page| {
        let status = page.status.as_ref();
        status.is_some_and(|status| {
            windlass::condition::is_true(&status.conditions, "Ready") && status.own.path == "/old"
        })
    };
    cluster.until("old", is_ready).await;
    let kept = cluster.api::<ConfigMap>().get("old").await.unwrap();
    assert_eq!((kept.uid(), &kept.data), (made.uid(), &made.data), "what was there is kept, not made anew");
}

#[test]
fn the_page_of_the_book_shows_the_code_that_is_tested() {
    let sources = BTreeMap::from([
        ("before.rs", include_str!("../examples/from-kube/before.rs")),
        ("kinds.rs", include_str!("../examples/from-kube/kinds.rs")),
        ("step1.rs", include_str!("../examples/from-kube/step1.rs")),
        ("step2.rs", include_str!("../examples/from-kube/step2.rs")),
        ("step3.rs", include_str!("../examples/from-kube/step3.rs")),
    ]);
    let page = include_str!("../../../docs/from-kube.md");
    let mut shown = 0;
    for block in page.split("```rust,ignore\n").skip(1) {
        let code = block.split("```").next().unwrap();
        assert!(sources.values().any(|source| source.contains(code)), "no file has\n{code}");
        shown += 1;
    }
    assert!(shown >= 4, "{shown} blocks");
}
