//! Backups, schedules and restores of a kind that knows nothing but its own Pods: the test does what the Pods would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use tokio_util::sync::CancellationToken;
use windlass::backup::{
    Backup, BackupOrder, BackupRecord, BackupSchedule, BackupStatus, Backups, FORMAT_VERSION, ORDER_VARIABLE, Obstacle,
    Phase, Progress, Restore, RestoreOrder, VerificationRecord, backups, restores, schedules,
};
use windlass::kube::Api;
use windlass::kube::api::{Patch, PatchParams, PostParams};
use windlass::prelude::*;
use windlass::runtime::{Manager, ManagerConfig, Metrics, Namespaces};
use windlass::serde_json::{self, Value, json};
use windlass::{Ability, Program, condition};
use windlass_testkit::{Profile, TestCluster};

/// A shop.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "example.com", version = "v1", kind = "Shop")]
pub struct ShopSpec {
    /// What it sells.
    pub goods: String,
    /// The backup that it begins with.
    pub from: Option<String>,
}

struct Shops;

impl Backups for Shops {
    type Target = Shop;

    const METHODS: &'static [&'static str] = &["copy"];

    fn take(&self, _: &BackupOrder, shop: &Shop) -> Result<PodSpec, Obstacle> {
        if shop.spec.goods.is_empty() {
            return Err(Obstacle::new("Empty", "there is nothing in it"));
        }
        Ok(serde_json::from_value(json!({"containers": [{"name": "copy", "image": "copier"}]})).unwrap())
    }

    fn verify(&self, _: &str, _: &BackupStatus) -> Option<PodSpec> {
        Some(serde_json::from_value(json!({"containers": [{"name": "try", "image": "copier"}]})).unwrap())
    }

    fn restored(&self, order: &RestoreOrder) -> Result<Shop, String> {
        let spec: ShopSpec = serde_json::from_value(order.configuration.clone().ok_or("no configuration")?).unwrap();
        Ok(Shop::new(&order.name, ShopSpec { from: Some(order.path.clone()), ..spec }))
    }

    fn progress(&self, shop: &Shop) -> Progress {
        match shop.annotations().get("open") {
            Some(_) => Progress::Done { backup: shop.spec.from.clone(), recovered_to: None },
            None => Progress::Working("it is not open".into()),
        }
    }
}

async fn start() -> (TestCluster, Metrics) {
    let cluster = TestCluster::builder().profile(Profile::Gc).start().await;
    cluster.define(vec![windlass::definition::<Shop>()]).await;
    let program = windlass::program("shops").with(backups(Shops)).with(schedules::<Shops>()).with(restores(Shops));
    cluster.define(program.crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("shops"));
    program.install(&mut manager, Namespaces::all());
    let metrics = manager.metrics().clone();
    tokio::spawn(manager.run(CancellationToken::new()));
    (cluster, metrics)
}

#[test]
fn what_is_served_is_what_the_program_is_able_to_do() {
    let program = windlass::program("shops").with(backups(Shops)).with(schedules::<Shops>()).with(restores(Shops));
    let able: Vec<(Ability, String)> =
        program.abilities().iter().map(|it| (it.ability(), it.kind().to_owned())).collect();
    let of_shops = |ability| (ability, "Shop".to_owned());
    assert_eq!(able, [Ability::Backup, Ability::Schedule, Ability::Restore].map(of_shops));
    assert!(windlass::program("none").abilities().is_empty());
}

async fn shop(cluster: &TestCluster, name: &str) {
    cluster.create::<Shop>(json!({"metadata": {"name": name}, "spec": {"goods": "tea"}})).await;
}

fn target(name: &str) -> Value {
    json!({"group": "example.com", "kind": "Shop", "name": name})
}

async fn ask(cluster: &TestCluster, name: &str, of: &str) {
    let spec = json!({"target": target(of), "deadlineSeconds": 600});
    cluster.create::<Backup>(json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn until(cluster: &TestCluster, name: &str, phase: Phase) -> BackupStatus {
    let is_so = |it: &Backup| it.status.as_ref().is_some_and(|status| status.phase == phase);
    cluster.until(name, is_so).await.status.unwrap().own
}

/// The Job of a backup, as soon as there is one.
async fn job_of(cluster: &TestCluster, backup: &str) -> Job {
    let uid = cluster.until(backup, |_: &Backup| true).await.uid().unwrap();
    cluster.until(&format!("{backup}-{}", &uid[..8]), |_: &Job| true).await
}

/// The Job that is there besides those that are known.
async fn job_beside(cluster: &TestCluster, known: &[&Job]) -> Job {
    let is_new = |job: &Job| !known.iter().any(|it| it.name_any() == job.name_any());
    let jobs = cluster.until_all(|jobs: &[Job]| jobs.iter().any(is_new)).await;
    jobs.into_iter().find(is_new).unwrap()
}

fn order_of(job: &Job) -> BackupOrder {
    let pod = job.spec.clone().unwrap().template.spec.unwrap();
    let env = pod.containers[0].env.clone().unwrap();
    let order = env.into_iter().find(|it| it.name == ORDER_VARIABLE).unwrap().value.unwrap();
    serde_json::from_str(&order).unwrap()
}

/// What the Pod of a Job would leave, and what whoever runs Jobs would say of it.
async fn end(cluster: &TestCluster, job: &Job, is_done: bool, words: &str) {
    let name = job.name_any();
    let labels = json!({"batch.kubernetes.io/job-name": name});
    cluster
        .create::<Pod>(json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "copy", "image": "copier"}]},
        }))
        .await;
    let terminated = json!({"exitCode": i32::from(!is_done), "message": words});
    let container = json!({
        "name": "copy", "image": "copier", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": terminated},
    });
    let (pods, jobs): (Api<Pod>, Api<Job>) = (cluster.api(), cluster.api());
    let patch = json!({"status": {"containerStatuses": [container]}});
    pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let now = "2026-01-01T00:00:00Z";
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "Test", "lastTransitionTime": now});
    let status = match is_done {
        true => json!({
            "startTime": now, "completionTime": now, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
        }),
        false => json!({
            "startTime": now, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")],
        }),
    };
    jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await.unwrap();
}

fn record(order: &BackupOrder, completed: &str) -> BackupRecord {
    let completed_at: windlass::backup::Timestamp = completed.parse().unwrap();
    BackupRecord {
        format_version: FORMAT_VERSION,
        id: order.id.clone(),
        backup: order.backup.clone(),
        schedule: order.schedule.clone(),
        method: order.method.clone(),
        started_at: completed_at,
        completed_at,
        size_bytes: 3,
        location: format!("somewhere/base/{}", order.id),
        application_version: "1.0".into(),
        taken_from: "shop".into(),
        data_id: "7".into(),
        timeline: 1,
        begin: "1".into(),
        end: "2".into(),
        checksum: "sha256:0".into(),
        configuration: order.configuration.clone(),
    }
}

#[tokio::test]
async fn one_backup_at_a_time_with_a_status_that_metrics_agree_with() {
    let (cluster, metrics) = start().await;
    shop(&cluster, "tea").await;
    ask(&cluster, "b", "tea").await;
    ask(&cluster, "a", "tea").await;
    let job = job_of(&cluster, "b").await;
    let waiting = cluster
        .until("a", |it: &Backup| {
            let ready = it.status.as_ref().and_then(|status| condition::find(&status.conditions, "Ready"));
            ready.is_some_and(|ready| ready.reason == "OtherBackupRuns")
        })
        .await;
    assert_eq!(waiting.status.unwrap().phase, Phase::Pending);
    assert_eq!(cluster.list::<Job>().await.len(), 1, "one at a time");
    until(&cluster, "b", Phase::Running).await;

    let order = order_of(&job);
    assert_eq!((order.method.as_str(), &order.configuration["goods"]), ("copy", &json!("tea")));
    end(&cluster, &job, true, &record(&order, "2026-01-01T00:00:05Z").last_words()).await;
    let done = until(&cluster, "b", Phase::Succeeded).await;
    assert_eq!((done.size_bytes, done.begin.as_deref()), (Some(3), Some("1")));
    assert_eq!(done.configuration.unwrap()["goods"], "tea");

    end(&cluster, &job_of(&cluster, "a").await, false, "no space left").await;
    let failed = until(&cluster, "a", Phase::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("no space left"));
    let text = metrics.render();
    for line in [
        "operator_backups_total{method=\"copy\",result=\"succeeded\"} 1",
        "operator_backups_total{method=\"copy\",result=\"failed\"} 1",
        "operator_backup_last_success_timestamp_seconds{kind=\"Shop\",namespace=\"default\",name=\"tea\"} 1767225605.0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_backup_is_restored_to_see_that_it_can_be() {
    let (cluster, metrics) = start().await;
    shop(&cluster, "tea").await;
    let spec = json!({"target": target("tea"), "deadlineSeconds": 600, "verify": true});
    cluster.create::<Backup>(json!({"metadata": {"name": "b"}, "spec": spec})).await;
    let job = job_of(&cluster, "b").await;
    let order = order_of(&job);
    end(&cluster, &job, true, &record(&order, "2026-01-01T00:00:05Z").last_words()).await;
    until(&cluster, "b", Phase::Succeeded).await;
    let first = job_beside(&cluster, &[&job]).await;
    let verified_at = "2026-01-01T00:01:00Z".parse().unwrap();
    let words = VerificationRecord { id: order.id.clone(), verified_at, recovery_seconds: 3.5 }.last_words();
    end(&cluster, &first, true, &words).await;
    let is_verified = |truth: &'static str| {
        move |it: &Backup| {
            let verified = it.status.as_ref().and_then(|status| condition::find(&status.conditions, "Verified"));
            verified.is_some_and(|it| it.status == truth)
        }
    };
    let status = cluster.until("b", is_verified("True")).await.status.unwrap();
    assert_eq!((status.verified_at.as_deref(), status.recovery_seconds), (Some("2026-01-01T00:01:00Z"), Some(3.5)));
    let line =
        "operator_restore_verified_timestamp_seconds{kind=\"Shop\",namespace=\"default\",name=\"tea\"} 1767225660.0";
    assert!(metrics.render().lines().any(|it| it == line), "{}", metrics.render());

    cluster.patch::<Backup>("b", json!({"metadata": {"annotations": {"windlass.dev/verify": "again"}}})).await;
    let second = job_beside(&cluster, &[&job, &first]).await;
    end(&cluster, &second, false, "segment 3 is damaged").await;
    let status = cluster.until("b", is_verified("False")).await.status.unwrap();
    assert_eq!((status.phase, status.error.as_deref()), (Phase::Succeeded, Some("JobFailed: segment 3 is damaged")));
    assert_eq!(status.verified_at.as_deref(), Some("2026-01-01T00:01:00Z"), "that it once could be stays true");
}

#[tokio::test]
async fn backups_of_kinds_that_others_keep_are_left_alone_and_bad_ones_are_told_of() {
    let (cluster, _) = start().await;
    shop(&cluster, "tea").await;
    let other = json!({"group": "example.org", "kind": "Shop", "name": "tea"});
    let spec = json!({"target": other, "deadlineSeconds": 600});
    cluster.create::<Backup>(json!({"metadata": {"name": "other"}, "spec": spec})).await;
    let spec = json!({"target": target("tea"), "method": "magic", "deadlineSeconds": 600});
    cluster.create::<Backup>(json!({"metadata": {"name": "magic"}, "spec": spec})).await;
    let failed = until(&cluster, "magic", Phase::Failed).await;
    assert_eq!(failed.error.as_deref(), Some("there is no method \"magic\": say one of copy"));
    assert!(cluster.until("other", |_: &Backup| true).await.status.is_none(), "somebody else's");
    let api: Api<Backup> = cluster.api();
    let patch = Patch::Merge(json!({"spec": {"deadlineSeconds": 5}}));
    let refused = api.patch("magic", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(refused.to_string().contains("a backup is taken once"), "{refused}");
}

#[tokio::test]
async fn a_schedule_makes_backups_that_outlive_it() {
    let (cluster, _) = start().await;
    shop(&cluster, "tea").await;
    let spec = json!({
        "target": target("tea"), "schedule": "0 0 1 1 *", "immediate": true, "deadlineSeconds": 600,
        "retention": {"keep": 2},
    });
    cluster.create::<BackupSchedule>(json!({"metadata": {"name": "yearly"}, "spec": spec})).await;
    let schedule = cluster
        .until("yearly", |it: &BackupSchedule| it.status.as_ref().is_some_and(|status| status.last_backup.is_some()))
        .await;
    let status = schedule.status.unwrap();
    let made = cluster.until(status.last_backup.as_deref().unwrap(), |_: &Backup| true).await;
    assert_eq!((made.spec.keep, made.spec.schedule.as_deref()), (Some(2), Some("yearly")));
    assert!(made.metadata.owner_references.is_none(), "a backup belongs to nobody");
    let next = status.next_time.clone().unwrap();
    assert!(next.ends_with("-01-01T00:00:00Z"), "{next}");
    assert_eq!(cluster.list::<Backup>().await.len(), 1, "immediately means once");

    let spec = json!({"target": target("tea"), "schedule": "every day", "deadlineSeconds": 600});
    cluster.create::<BackupSchedule>(json!({"metadata": {"name": "odd"}, "spec": spec})).await;
    cluster
        .until("odd", |it: &BackupSchedule| {
            let stalled = it.status.as_ref().and_then(|status| condition::find(&status.conditions, "Stalled"));
            stalled.is_some_and(|it| it.status == "True" && it.message.contains("five fields"))
        })
        .await;
}

#[tokio::test]
async fn a_restore_makes_a_new_resource_and_never_touches_one_that_is_there() {
    let (cluster, _) = start().await;
    shop(&cluster, "tea").await;
    ask(&cluster, "b", "tea").await;
    let job = job_of(&cluster, "b").await;
    end(&cluster, &job, true, &record(&order_of(&job), "2026-01-01T00:00:05Z").last_words()).await;
    until(&cluster, "b", Phase::Succeeded).await;
    let restore = |name: &str| {
        let spec = json!({"source": {"backup": "b"}, "into": target(name), "deadlineSeconds": 600});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let phase = |it: &Restore| it.status.as_ref().map(|status| status.phase).unwrap_or_default();
    cluster.create::<Restore>(restore("tea")).await;
    let refused = cluster.until("tea", |it: &Restore| phase(it) == Phase::Failed).await.status.unwrap();
    assert!(refused.error.as_deref().is_some_and(|it| it.contains("nothing is restored over it")), "{refused:?}");
    assert_eq!(cluster.until("tea", |_: &Shop| true).await.spec.from, None);

    cluster.create::<Restore>(restore("again")).await;
    let made = cluster.until("again", |_: &Shop| true).await;
    assert_eq!((made.spec.goods.as_str(), made.metadata.owner_references.is_none()), ("tea", true));
    assert_eq!(made.spec.from.as_deref(), Some(format!("somewhere/base/{}", job.name_any()).as_str()));
    cluster.until("again", |it: &Restore| phase(it) == Phase::Running).await;
    cluster.patch::<Shop>("again", json!({"metadata": {"annotations": {"open": "yes"}}})).await;
    let done = cluster.until("again", |it: &Restore| phase(it) == Phase::Succeeded).await.status.unwrap();
    assert!(done.backup.is_some() && done.duration_seconds.is_some(), "{done:?}");
    let both: Api<Restore> = cluster.api();
    let neither = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Restore", "metadata": {"name": "x"},
        "spec": {"source": {}, "into": target("x"), "deadlineSeconds": 600},
    });
    let refused = both.create(&PostParams::default(), &serde_json::from_value(neither).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("say either backup or storage"), "{refused}");
}
