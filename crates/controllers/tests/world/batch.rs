//! Jobs.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::world::workloads;

fn job(name: &str, spec: Value) -> Value {
    let mut all =
        json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}}});
    spec.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
    json!({"metadata": {"name": name}, "spec": all})
}

fn has(job: &Job, type_: &str) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

#[tokio::test]
async fn a_job_runs_its_pods_and_completes() {
    let world = workloads().await;
    world.create::<Job>(job("five", json!({"completions": 5, "parallelism": 2}))).await;
    let done = world.until("five", |job: &Job| has(job, "Complete")).await;
    let status = done.status.unwrap();
    assert_eq!((status.succeeded, status.failed, status.active), (Some(5), None, None));
    let pods = world.until_all(|pods: &[Pod]| pods.iter().all(|pod| pod.finalizers().is_empty())).await;
    assert_eq!(pods.len(), 5);
    world.until_event("five", "Completed").await;

    world.api::<Job>().delete("five", &DeleteParams::background()).await.unwrap();
    world.until_all(|pods: &[Pod]| pods.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn an_indexed_job_completes_every_index() {
    let world = workloads().await;
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    world.create::<Job>(job("indexed", spec)).await;
    let done = world.until("indexed", |job: &Job| has(job, "Complete")).await;
    assert_eq!(done.status.unwrap().completed_indexes.as_deref(), Some("0-2"));
    world.stop().await;
}

#[tokio::test]
async fn a_suspended_job_waits_and_a_finished_one_expires() {
    let world = workloads().await;
    world.create::<Job>(job("rest", json!({"suspend": true, "ttlSecondsAfterFinished": 0}))).await;
    world.until("rest", |job: &Job| has(job, "Suspended")).await;
    assert!(world.list::<Pod>().await.is_empty());
    world.patch::<Job>("rest", json!({"spec": {"suspend": false}})).await;
    world.until_gone::<Job>("rest").await;
    world.until_all(|pods: &[Pod]| pods.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn a_failure_policy_ends_a_job_or_forgives() {
    let world = workloads().await;
    let rule = |action: &str| json!({"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]});
    let failing = |name: &str, code: &str, spec: Value| {
        let mut job = job(name, spec);
        job["spec"]["template"]["metadata"] = json!({"annotations": {"windlass.dev/fake-exit-code": code}});
        job
    };
    world.create::<Job>(failing("fatal", "42", json!({"podFailurePolicy": rule("FailJob")}))).await;
    let failed = world.until("fatal", |job: &Job| has(job, "Failed")).await.status.unwrap();
    let reason = failed.conditions.unwrap().into_iter().find(|known| known.type_ == "Failed").unwrap().reason;
    assert_eq!((reason.as_deref(), failed.failed), (Some("PodFailurePolicy"), Some(1)));

    let spec = json!({"podFailurePolicy": rule("Ignore"), "backoffLimit": 0});
    world.create::<Job>(failing("forgiven", "42", spec)).await;
    world.until_all(|pods: &[Pod]| pods.iter().filter(|pod| pod.name_any().starts_with("forgiven")).count() >= 2).await;
    let job = world.api::<Job>().get("forgiven").await.unwrap();
    assert!(!has(&job, "Failed") && job.status.unwrap().failed.is_none());
    world.stop().await;
}

#[tokio::test]
async fn indexes_fail_one_by_one() {
    let world = workloads().await;
    let mut spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 0});
    spec["template"] = json!({"metadata": {"annotations": {"windlass.dev/fake-exit-code": "1"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}});
    world.create::<Job>(job("split", spec)).await;
    let status = world.until("split", |job: &Job| has(job, "Failed")).await.status.unwrap();
    assert_eq!((status.failed_indexes.as_deref(), status.failed), (Some("0,1"), Some(2)));
    world.stop().await;
}

#[tokio::test]
async fn a_job_takes_its_pods_back_and_lets_others_go() {
    let world = workloads().await;
    let spec = json!({"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}});
    world.create::<Job>(job("keeper", spec)).await;
    let pods = world.until_all(|pods: &[Pod]| pods.len() == 1).await;
    let name = pods[0].name_any();
    world.patch::<Pod>(&name, json!({"metadata": {"ownerReferences": null}})).await;
    world.until(&name, |pod: &Pod| !pod.owner_references().is_empty()).await;
    world.patch::<Pod>(&name, json!({"metadata": {"labels": null}})).await;
    world.until(&name, |pod: &Pod| pod.owner_references().is_empty() && pod.finalizers().is_empty()).await;
    world.until_all(|pods: &[Pod]| pods.len() == 2).await;
    world.stop().await;
}

#[tokio::test]
async fn a_job_of_another_manager_is_left_alone() {
    let world = workloads().await;
    world.create::<Job>(job("foreign", json!({"managedBy": "example.com/queue"}))).await;
    world.create::<Job>(job("own", json!({}))).await;
    world.until("own", |job: &Job| has(job, "Complete")).await;
    let foreign = world.api::<Job>().get("foreign").await.unwrap();
    assert!(foreign.status.unwrap_or_default().start_time.is_none());
    world.stop().await;
}
