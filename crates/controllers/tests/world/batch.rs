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
