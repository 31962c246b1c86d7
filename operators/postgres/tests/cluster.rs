//! The operator at work, with Pods that only seem to run: the test says what their supervisors would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use postgres_operator::{PostgresCluster, SWITCHOVER, app};
use windlass::kube::Api;
use windlass::kube::api::{Patch, PatchParams, PostParams};
use windlass::prelude::*;
use windlass::serde_json::{self, Value, json};
use windlass_testkit::{Profile, TestCluster};

const REPORT: &str = "postgres.windlass.dev/report";
const REVISION: &str = "postgres.windlass.dev/revision";

async fn create(cluster: &TestCluster, spec: Value) {
    cluster.create::<PostgresCluster>(json!({"metadata": {"name": "db"}, "spec": spec})).await;
}

async fn patch(cluster: &TestCluster, patch: Value) {
    let api: Api<PostgresCluster> = cluster.api();
    api.patch("db", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// What a member's supervisor would say.
async fn say(cluster: &TestCluster, member: &str, role: &str) {
    let report = json!({
        "member": member, "systemId": "7", "role": role, "position": {"timeline": 1, "lsn": 5},
        "streaming": role == "replica", "version": "15.18", "state": role,
    });
    let pods: Api<Pod> = cluster.api();
    let patch = json!({"metadata": {"annotations": {REPORT: report.to_string()}}});
    cluster.until(&format!("{member}-0"), |_: &Pod| true).await;
    pods.patch(&format!("{member}-0"), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn is_ready(cluster: &TestCluster) -> PostgresCluster {
    cluster
        .until("db", |it: &PostgresCluster| {
            let status = it.status.as_ref();
            let is_seen = status.and_then(|status| status.observed_generation) == it.metadata.generation;
            let conditions = status.map(|status| status.conditions.clone()).unwrap_or_default();
            is_seen && conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        })
        .await
}

async fn revisions(cluster: &TestCluster) -> BTreeMap<String, String> {
    let sets = cluster.list::<StatefulSet>().await;
    sets.iter().map(|set| (set.name_any(), set.annotations()[REVISION].clone())).collect()
}

fn plan(map: &ConfigMap) -> Value {
    serde_json::from_str(&map.data.as_ref().unwrap()["plan.json"]).unwrap()
}

#[tokio::test]
async fn members_change_one_after_the_other_and_passwords_never() {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    let operator = cluster.run(&app()).await;
    create(&cluster, json!({"instances": 3, "leaseSeconds": 6, "synchronous": {"any": 1}})).await;
    for (member, role) in [("db-1", "primary"), ("db-2", "replica"), ("db-3", "replica")] {
        say(&cluster, member, role).await;
    }
    let status = is_ready(&cluster).await.status.unwrap();
    assert_eq!((status.primary.as_deref(), status.current_version.as_deref()), (Some("db-1"), Some("15.18")));
    let password = cluster.until("db-app", |_: &Secret| true).await.data.unwrap()["password"].clone();
    assert_eq!(password.0.len(), 32);
    let before = revisions(&cluster).await;

    patch(&cluster, json!({"spec": {"image": "postgres:15.18"}})).await;
    for member in ["db-3", "db-2"] {
        let is_new = |revision: &String| *revision != before[member];
        cluster.until(&format!("{member}-0"), |pod: &Pod| is_new(&pod.annotations()[REVISION])).await;
        assert_eq!(revisions(&cluster).await["db-1"], before["db-1"], "the primary is the last");
        say(&cluster, member, "replica").await;
    }
    cluster.until("db-plan", |map: &ConfigMap| plan(map)["successor"].is_string()).await;
    assert_eq!(revisions(&cluster).await["db-1"], before["db-1"], "it hands over first");
    say(&cluster, "db-1", "replica").await;
    say(&cluster, "db-3", "primary").await;
    cluster.until("db-1", |set: &StatefulSet| set.annotations()[REVISION] != before["db-1"]).await;
    let after = cluster.until("db-app", |_: &Secret| true).await.data.unwrap()["password"].clone();
    assert_eq!(after, password, "a password is made once");
    operator.stop().await;
}

#[tokio::test]
async fn members_go_and_requests_are_answered() {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    let operator = cluster.run(&app()).await;
    create(&cluster, json!({"instances": 3, "leaseSeconds": 6})).await;
    for (member, role) in [("db-1", "replica"), ("db-2", "replica"), ("db-3", "primary")] {
        say(&cluster, member, role).await;
    }
    is_ready(&cluster).await;
    patch(&cluster, json!({"metadata": {"annotations": {SWITCHOVER: "db-9"}}})).await;
    cluster
        .until("db", |it: &PostgresCluster| {
            let answer = it.status.as_ref().and_then(|status| status.switchover.clone());
            answer.is_some_and(|answer| answer.state == "Refused" && answer.message.contains("db-1, db-2, db-3"))
        })
        .await;
    patch(&cluster, json!({"spec": {"instances": 1}})).await;
    let map = cluster.until("db-plan", |map: &ConfigMap| plan(map)["successor"] == "db-1").await;
    assert_eq!(plan(&map)["members"], json!(["db-1", "db-3"]), "the primary is told until it has handed over");
    assert_eq!(revisions(&cluster).await.len(), 3);
    say(&cluster, "db-3", "replica").await;
    say(&cluster, "db-1", "primary").await;
    cluster.until_gone::<StatefulSet>("db-3").await;
    cluster.until_gone::<StatefulSet>("db-2").await;
    assert_eq!(is_ready(&cluster).await.status.unwrap().instances, 1);
    operator.stop().await;
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_the_reason() {
    let cluster = TestCluster::builder().profile(Profile::Workloads).start().await;
    let operator = cluster.run(&app()).await;
    let api: Api<PostgresCluster> = cluster.api();
    let object = json!({
        "apiVersion": "postgres.windlass.dev/v1alpha1", "kind": "PostgresCluster", "metadata": {"name": "db"},
        "spec": {"instances": 1, "leaseSeconds": 6, "synchronous": {"any": 1}, "parameters": {"fsync": "off", "port": "1"}},
    });
    let refused = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap_err();
    let said = refused.to_string();
    for words in ["fsync cannot be set: data would not survive", "port is set by the operator", "where there are 0"] {
        assert!(said.contains(words), "{words} in {said}");
    }
    operator.stop().await;
}
