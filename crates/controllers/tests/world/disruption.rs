//! PodDisruptionBudgets and CronJobs.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::EvictParams;
use serde_json::json;

use super::world::{deployment, workloads};

#[tokio::test]
async fn a_budget_lets_go_only_what_is_beyond_need() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 3, "one")).await;
    let budget = json!({"metadata": {"name": "web"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    world.create::<PodDisruptionBudget>(budget).await;
    let allows = |budget: &PodDisruptionBudget, number: i32| {
        budget
            .status
            .as_ref()
            .is_some_and(|status| status.disruptions_allowed == Some(number) && status.expected_pods == Some(3))
    };
    world.until("web", |budget| allows(budget, 1)).await;
    let pods = world.list::<Pod>().await;
    world.api::<Pod>().evict(&pods[0].name_any(), &EvictParams::default()).await.unwrap();
    world.until_gone::<Pod>(&pods[0].name_any()).await;
    world.until("web", |budget| allows(budget, 1)).await;

    world.patch::<PodDisruptionBudget>("web", json!({"spec": {"maxUnavailable": 0}})).await;
    world.until("web", |budget| allows(budget, 0)).await;
    let pods = world.list::<Pod>().await;
    let refused = world.api::<Pod>().evict(&pods[0].name_any(), &EvictParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 429), "{refused:?}");
    world.stop().await;
}

#[tokio::test]
async fn a_schedule_that_was_missed_is_served_once() {
    let world = workloads().await;
    let cron = world
        .create::<CronJob>(
            json!({"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "one"}]}}}}}}),
        )
        .await;
    // As if it had run two minutes ago.
    let before = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(2);
    let mut past = cron;
    past.status.get_or_insert_default().last_schedule_time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(before));
    past.metadata.resource_version = None;
    world.api::<CronJob>().replace_status("tick", &Default::default(), &past).await.unwrap();
    world
        .until("tick", |cron: &CronJob| {
            let status = cron.status.clone().unwrap_or_default();
            status.last_successful_time.is_some() && status.active.is_none()
        })
        .await;
    let jobs = world.list::<Job>().await;
    assert!(!jobs.is_empty() && jobs.iter().all(|job| job.name_any().starts_with("tick-")), "{jobs:#?}");
    world.stop().await;
}
