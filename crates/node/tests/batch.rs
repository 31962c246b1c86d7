//! Jobs and CronJobs whose Pods are real processes; the time of the controllers is the test's.
//! `cargo test -p windlass-node --test batch [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;

use std::path::Path;
use std::time::Duration;

use ground::{Test, eventually, on_clock, processes, told, unique, until_processes};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use windlass_clock::Clock;

/// More than any wait between two attempts of a Job.
const BACK_OFF: Duration = Duration::from_secs(700);

const TESTS: &[Test] = &[
    ("an_exit_code_fails_the_job_at_once_or_counts", || Box::pin(exit_codes())),
    ("an_evicted_pod_does_not_count", || Box::pin(evicted())),
    ("each_index_has_its_own_limit", || Box::pin(per_index())),
    ("some_indexes_are_success_enough", || Box::pin(success())),
    ("a_cron_job_runs_at_its_times_and_keeps_its_history", || Box::pin(history())),
    ("a_cron_job_follows_the_clocks_of_its_zone", || Box::pin(zone())),
    ("what_still_runs_forbids_or_is_replaced", || Box::pin(concurrency())),
    ("a_missed_time_is_made_up_for_unless_it_is_too_late", || Box::pin(deadline())),
];

fn main() {
    ground::run(TESTS);
}

async fn on_cluster(test: impl AsyncFnOnce(Client, &Clock, &Path)) {
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    on_clock(&now, test).await;
}

fn template(script: &str) -> Value {
    json!({"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
        {"name": "c", "image": "host", "command": ["/bin/sh", "-c", script]}]}})
}

async fn start(client: &Client, name: &str, mut spec: Value, script: &str) {
    spec["template"] = template(script);
    let job = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
    Api::<Job>::default_namespaced(client.clone()).create(&PostParams::default(), &job).await.unwrap();
}

fn condition(job: &Job, type_: &str) -> Option<JobCondition> {
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == type_ && condition.status == "True").cloned()
}

/// Waits until a Job has ended in a way: the Job, and why.
async fn ended(client: &Client, name: &str, type_: &'static str) -> (Job, String, String) {
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let has = |job: Option<&Job>| job.is_some_and(|job| condition(job, type_).is_some());
    let job = await_condition(jobs, name, has).await.unwrap().unwrap();
    let why = condition(&job, type_).unwrap();
    (job, why.reason.unwrap_or_default(), why.message.unwrap_or_default())
}

async fn pods_of(client: &Client, job: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.list(&ListParams::default().labels(&format!("job-name={job}"))).await.unwrap().items
}

async fn exit_codes() {
    on_cluster(async |client, clock, _| {
        let rules = json!({"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [0]}}]});
        let spec = json!({"backoffLimit": 1, "podFailurePolicy": rules});
        start(&client, "fails", spec.clone(), "exit 42").await;
        start(&client, "counts", spec, "exit 1").await;
        let (job, reason, message) = ended(&client, "fails", "Failed").await;
        assert_eq!(reason, "PodFailurePolicy");
        assert!(message.contains("failed with exit code 42 matching FailJob rule at index 0"), "{message}");
        assert_eq!((job.status.unwrap().failed, pods_of(&client, "fails").await.len()), (Some(1), 1));

        let counted = |job: Option<&Job>| job.and_then(|job| job.status.as_ref()?.failed) == Some(1);
        await_condition(Api::<Job>::default_namespaced(client.clone()), "counts", counted).await.unwrap();
        clock.advance(BACK_OFF);
        let (job, reason, _) = ended(&client, "counts", "Failed").await;
        assert_eq!((reason.as_str(), job.status.unwrap().failed), ("BackoffLimitExceeded", Some(2)));
    })
    .await;
}

async fn evicted() {
    on_cluster(async |client, clock, directory| {
        let word = unique();
        let marks = directory.join("marks");
        std::fs::create_dir(&marks).unwrap();
        // The first Pod waits for its end, the next one does the work.
        let script = format!("if test -e /marks/first; then exit 0; fi; touch /marks/first; exec sleep {word}");
        let rules = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]});
        let mut template = template(&script);
        template["spec"]["volumes"] = json!([{"name": "marks", "hostPath": {"path": marks}}]);
        template["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "marks", "mountPath": "/marks"}]);
        let job = json!({"metadata": {"name": "j"}, "spec":
            {"backoffLimit": 0, "podFailurePolicy": rules, "template": template}});
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
        until_processes(&word, 1).await;
        let first = pods_of(&client, "j").await.remove(0);
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        pods.evict(&first.name_any(), &EvictParams::default()).await.unwrap();
        until_processes(&word, 0).await;
        clock.advance(BACK_OFF);
        let (job, _, _) = ended(&client, "j", "Complete").await;
        let status = job.status.unwrap();
        assert_eq!((status.succeeded, status.failed.unwrap_or(0)), (Some(1), 0));
    })
    .await;
}

async fn per_index() {
    on_cluster(async |client, clock, _| {
        let spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimitPerIndex": 1});
        start(&client, "j", spec, "test $JOB_COMPLETION_INDEX != 1").await;
        let jobs: Api<Job> = Api::default_namespaced(client.clone());
        let rest_is_done = |job: Option<&Job>| {
            job.and_then(|job| job.status.as_ref()?.completed_indexes.clone()).as_deref() == Some("0,2,3")
        };
        await_condition(jobs, "j", rest_is_done).await.unwrap();
        clock.advance(BACK_OFF);
        let (job, reason, _) = ended(&client, "j", "Failed").await;
        let status = job.status.unwrap();
        assert_eq!(reason, "FailedIndexes");
        assert_eq!(status.completed_indexes.as_deref(), Some("0,2,3"));
        assert_eq!((status.failed_indexes.as_deref(), status.failed), (Some("1"), Some(2)));
    })
    .await;
}

async fn success() {
    on_cluster(async |client, _, _| {
        let word = unique();
        let spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": 0,
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]}});
        let script = format!("test $JOB_COMPLETION_INDEX = 0 || exec sleep {word}; sleep 1");
        start(&client, "j", spec, &script).await;
        until_processes(&word, 2).await;
        let (job, reason, _) = ended(&client, "j", "Complete").await;
        assert_eq!(reason, "SuccessPolicy");
        assert_eq!(job.status.as_ref().unwrap().completed_indexes.as_deref(), Some("0"));
        assert!(processes(&word).is_empty(), "a Job is complete when its Pods have ended");
    })
    .await;
}

fn cron(name: &str, schedule: &str, more: &Value, script: &str) -> CronJob {
    let mut spec = json!({"schedule": schedule, "jobTemplate": {"spec": {"template": template(script)}}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// Jobs of a CronJob in the order of their moments.
async fn jobs_of(client: &Client, cron: &str) -> Vec<Job> {
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let mut jobs = jobs.list(&ListParams::default()).await.unwrap().items;
    jobs.retain(|job| job.name_any().starts_with(&format!("{cron}-")));
    jobs.sort_by_key(ResourceExt::name_any);
    jobs
}

/// Waits until a CronJob's Jobs are as wanted.
async fn until_jobs(client: &Client, cron: &str, holds: impl Fn(&[Job]) -> bool) -> Vec<Job> {
    eventually(async || Some(jobs_of(client, cron).await).filter(|jobs| holds(jobs))).await
}

fn moment(job: &Job) -> String {
    job.annotations().get("batch.kubernetes.io/cronjob-scheduled-timestamp").cloned().unwrap_or_default()
}

const MINUTE: Duration = Duration::from_secs(60);

async fn history() {
    on_clock("2026-01-15T12:00:30Z", async |client, clock, directory| {
        let crons: Api<CronJob> = Api::default_namespaced(client.clone());
        let runs = directory.join("runs");
        std::fs::write(&runs, "").unwrap();
        let limits = json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 0});
        let mut cron = serde_json::to_value(cron("c", "*/2 * * * *", &limits, "echo run >> /runs")).unwrap();
        let pod = &mut cron["spec"]["jobTemplate"]["spec"]["template"]["spec"];
        pod["volumes"] = json!([{"name": "runs", "hostPath": {"path": runs}}]);
        pod["containers"][0]["volumeMounts"] = json!([{"name": "runs", "mountPath": "/runs"}]);
        crons.create(&PostParams::default(), &serde_json::from_value(cron).unwrap()).await.unwrap();
        let done = |job: &Job| condition(job, "Complete").is_some();
        for (run, minute) in ["02", "04", "06", "08"].into_iter().enumerate() {
            clock.advance(2 * MINUTE);
            let expect = format!("2026-01-15T12:{minute}:00Z");
            let last = |jobs: &[Job]| jobs.last().is_some_and(|job| moment(job) == expect && done(job));
            until_jobs(&client, "c", last).await;
            assert_eq!(std::fs::read_to_string(&runs).unwrap().lines().count(), run + 1, "one process per moment");
        }
        let kept = until_jobs(&client, "c", |jobs| jobs.len() == 2).await;
        assert_eq!(moment(&kept[0]), "2026-01-15T12:06:00Z");
        let has = |cron: Option<&CronJob>| {
            let status = cron.and_then(|cron| cron.status.as_ref());
            status.is_some_and(|status| status.last_successful_time.is_some() && status.active.is_none())
        };
        await_condition(crons, "c", has).await.unwrap();
    })
    .await;
}

async fn zone() {
    // In Berlin it is one hour later than in London, and clocks go forward at 01:00 UTC on that day.
    on_clock("2026-03-28T07:29:00Z", async |client, clock, _| {
        let crons: Api<CronJob> = Api::default_namespaced(client.clone());
        let berlin = cron("berlin", "30 8 * * *", &json!({"timeZone": "Europe/Berlin"}), "true");
        crons.create(&PostParams::default(), &berlin).await.unwrap();
        clock.advance(MINUTE);
        let first = until_jobs(&client, "berlin", |jobs| jobs.len() == 1).await;
        assert_eq!(moment(&first[0]), "2026-03-28T08:30:00+01:00");
        clock.advance(23 * 60 * MINUTE);
        let second = until_jobs(&client, "berlin", |jobs| jobs.len() == 2).await;
        assert_eq!(moment(&second[1]), "2026-03-29T08:30:00+02:00", "a day of 23 hours");
    })
    .await;
}

async fn concurrency() {
    on_clock("2026-01-15T12:00:30Z", async |client, clock, _| {
        let crons: Api<CronJob> = Api::default_namespaced(client.clone());
        let words = [unique(), unique()];
        for (policy, word) in ["Forbid", "Replace"].into_iter().zip(&words) {
            let script = format!("exec sleep {word}");
            let cron = cron(&policy.to_lowercase(), "* * * * *", &json!({"concurrencyPolicy": policy}), &script);
            crons.create(&PostParams::default(), &cron).await.unwrap();
        }
        clock.advance(MINUTE);
        let forbids = until_processes(&words[0], 1).await;
        let replaced = until_processes(&words[1], 1).await;
        clock.advance(MINUTE);
        told(&client, "forbid", "JobAlreadyActive", "prior execution is running").await;
        let next = |jobs: &[Job]| jobs.len() == 1 && moment(&jobs[0]) == "2026-01-15T12:02:00Z";
        until_jobs(&client, "replace", next).await;
        eventually(async || matches!(processes(&words[1])[..], [process] if process != replaced[0]).then_some(()))
            .await;
        assert_eq!(processes(&words[0]), forbids, "it goes on alone");
        assert_eq!(jobs_of(&client, "forbid").await.len(), 1);
    })
    .await;
}

async fn deadline() {
    on_clock("2026-01-15T12:00:30Z", async |client, clock, _| {
        let crons: Api<CronJob> = Api::default_namespaced(client.clone());
        for (name, deadline) in [("late", json!(null)), ("too-late", json!(60))] {
            let more = json!({"suspend": true, "startingDeadlineSeconds": deadline});
            crons.create(&PostParams::default(), &cron(name, "0 * * * *", &more, "true")).await.unwrap();
        }
        clock.advance(65 * MINUTE);
        for name in ["too-late", "late"] {
            let resume = Patch::Merge(json!({"spec": {"suspend": false}}));
            crons.patch(name, &PatchParams::default(), &resume).await.unwrap();
        }
        let made = until_jobs(&client, "late", |jobs| jobs.len() == 1).await;
        assert_eq!(moment(&made[0]), "2026-01-15T13:00:00Z");
        clock.advance(55 * MINUTE);
        let made = until_jobs(&client, "too-late", |jobs| !jobs.is_empty()).await;
        assert_eq!(moment(&made[0]), "2026-01-15T14:00:00Z", "the missed one was left out");
    })
    .await;
}
