//! The API server and the controllers obey the clock of the test.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec, TokenReview, TokenReviewSpec};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::{Controller, Profile, TestClock, TestCluster};

const HOUR: Duration = Duration::from_secs(3600);

fn pod_spec() -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]})
}

async fn workloads_from(time: &str) -> TestCluster {
    TestCluster::builder().profile(Profile::Workloads).clock(TestClock::running_from(time)).start().await
}

#[tokio::test]
async fn objects_carry_the_time_of_the_clock() {
    let clock = TestClock::frozen("2030-05-06T07:08:09Z");
    let cluster = TestCluster::builder().profile(Profile::Bare).clock(clock.clone()).start().await;
    clock.advance(HOUR);
    let spec = json!({"metadata": {"name": "p", "finalizers": ["example.com/stay"]}, "spec": pod_spec()});
    let pod: Pod = cluster.create(spec).await;
    assert_eq!(pod.creation_timestamp().unwrap().0.to_string(), "2030-05-06T08:08:09Z");
    assert_eq!(pod.managed_fields()[0].time.as_ref().unwrap().0, clock.now());
    cluster.patch::<Pod>("p", json!({"metadata": {"labels": {"a": "b"}}})).await;
    clock.advance(HOUR);
    let deleted = cluster.api::<Pod>().delete("p", &DeleteParams::default()).await.unwrap().unwrap_left();
    let until = deleted.metadata.deletion_timestamp.unwrap().0;
    assert_eq!(until, clock.now(), "a Pod without a node has no grace");
}

#[tokio::test]
async fn tokens_end_when_the_clock_says_so() {
    let clock = TestClock::frozen("2030-01-01T00:00:00Z");
    let cluster = TestCluster::builder().profile(Profile::Bare).clock(clock.clone()).start().await;
    cluster.create::<ServiceAccount>(json!({"metadata": {"name": "robot"}})).await;
    let accounts = cluster.api::<ServiceAccount>();
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..Default::default() };
    let request = TokenRequest { spec: Some(spec), ..Default::default() };
    let issued = accounts.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    let status = issued.status.unwrap();
    assert_eq!(status.expiration_timestamp.unwrap().0.to_string(), "2030-01-01T01:00:00Z");

    let reviews: Api<TokenReview> = Api::all(cluster.client());
    let spec = TokenReviewSpec { token: status.token.unwrap(), ..Default::default() };
    let review = TokenReview { spec, ..Default::default() };
    for expected in [Some(true), None] {
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        assert_eq!(answer.status.unwrap().authenticated.filter(|it| *it), expected);
        clock.advance(2 * HOUR);
    }
}

#[tokio::test]
async fn events_are_forgotten_after_an_hour() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    let about = json!({"kind": "ConfigMap", "namespace": "default", "name": "x"});
    cluster.create::<Event>(json!({"metadata": {"name": "old"}, "involvedObject": about, "reason": "R"})).await;
    cluster.clock().advance(HOUR + Duration::from_secs(120));
    cluster.until_gone::<Event>("old").await;
}

#[tokio::test]
async fn a_cron_job_makes_its_jobs_without_the_wait() {
    let cluster = workloads_from("2030-01-01T00:10:00Z").await;
    let template = json!({"spec": {"template": {"spec": pod_spec()}}});
    cluster
        .create::<CronJob>(
            json!({"metadata": {"name": "hourly"}, "spec": {"schedule": "0 * * * *", "jobTemplate": template}}),
        )
        .await;
    for hour in 1..=3 {
        cluster.clock().advance(HOUR);
        let scheduled = format!("2030-01-01T{hour:02}:00:00Z");
        cluster
            .until::<CronJob>("hourly", |cron| {
                let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
                last.is_some_and(|time| time.0.to_string() == scheduled)
            })
            .await;
    }
}

#[tokio::test]
async fn a_finished_job_expires_when_the_clock_says_so() {
    let cluster = workloads_from("2030-01-01T00:00:00Z").await;
    let spec = json!({"ttlSecondsAfterFinished": 7200, "template": {"spec": pod_spec()}});
    cluster.create::<Job>(json!({"metadata": {"name": "j"}, "spec": spec})).await;
    cluster.until("j", |job: &Job| job.status.as_ref().is_some_and(|it| it.completion_time.is_some())).await;
    assert!(cluster.api::<Job>().get_opt("j").await.unwrap().is_some());
    cluster.clock().advance(2 * HOUR);
    cluster.until_gone::<Job>("j").await;
}

#[tokio::test]
async fn a_deployment_without_progress_misses_its_deadline() {
    let profile = TestCluster::builder().profile(Profile::Workloads).without(Controller::FakeNode);
    let cluster = profile.start().await;
    let labels = json!({"app": "stuck"});
    let spec = json!({
        "selector": {"matchLabels": labels}, "progressDeadlineSeconds": 600,
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "one"}]}},
    });
    cluster.create::<Deployment>(json!({"metadata": {"name": "stuck"}, "spec": spec})).await;
    let progress = |deployment: &Deployment, reason: &str| {
        let conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Progressing" && it.reason.as_deref() == Some(reason))
    };
    cluster.until("stuck", |it: &Deployment| progress(it, "ReplicaSetUpdated")).await;
    cluster.clock().advance(HOUR);
    cluster.until("stuck", |it: &Deployment| progress(it, "ProgressDeadlineExceeded")).await;
}

#[tokio::test]
async fn a_frozen_clock_stands_still() {
    let clock = TestClock::frozen("2030-01-01T00:00:00Z");
    let cluster = TestCluster::builder().clock(clock).start().await;
    let one: ConfigMap = cluster.create(json!({"metadata": {"name": "one"}})).await;
    let two: ConfigMap = cluster.create(json!({"metadata": {"name": "two"}})).await;
    assert_eq!(one.creation_timestamp(), two.creation_timestamp());
}
