//! The Job that takes a backup: how it is made, and what is read from it.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{EnvVar, Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use sha2::{Digest, Sha256};

use super::decide::JobSeen;
use super::kind::{Backup, BackupTarget};
use super::record::{BackupOrder, ORDER_VARIABLE, RecordError};

/// The label of Jobs that names what they work on, by a hash.
pub(super) const TARGET: &str = "windlass.dev/backup-target";
/// The label that Jobs put on their Pods.
pub(super) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// How long a Job stays when it is over, for its log.
const KEPT_SECONDS: i32 = 3600;
/// Names of Jobs are labels of their Pods, which are not longer than 63.
const NAME_CHARS_MAX: usize = 47;
/// How much of last words is told.
const WORDS_CHARS_MAX: usize = 1000;

/// What the backup is called in storage, and its Job in the cluster: another one, even of the same name, has another uid.
pub(super) fn id(backup: &Backup) -> String {
    let uid = backup.uid().unwrap_or_default();
    let short: String = backup.name_any().chars().take(NAME_CHARS_MAX).collect();
    format!("{}-{}", short.trim_end_matches(['-', '.']), uid.chars().take(8).collect::<String>())
}

/// What tells targets apart, as the value of a label.
pub(super) fn target_key(target: &BackupTarget) -> String {
    let digest = Sha256::digest(format!("{}/{}/{}", target.group, target.kind, target.name));
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// The Job that has `pod` take the backup.
pub(super) fn job(backup: &Backup, order: &BackupOrder, mut pod: PodSpec) -> Job {
    if let Some(container) = pod.containers.first_mut() {
        let value = serde_json::to_string(order).expect("an order is plain data");
        let variable = EnvVar { name: ORDER_VARIABLE.into(), value: Some(value), value_from: None };
        container.env.get_or_insert_default().push(variable);
    }
    // That one works on the target keeps others from it.
    let labels = BTreeMap::from([(TARGET.to_owned(), target_key(&backup.spec.target))]);
    once(backup, &order.id, labels, pod)
}

/// The Job that has `pod` restore the backup, to see that it can be.
pub(super) fn verification(backup: &Backup, request: &str, pod: PodSpec) -> Job {
    once(backup, &verification_id(backup, request), BTreeMap::new(), pod)
}

/// What the Job is called that answers a request to verify a backup.
pub(super) fn verification_id(backup: &Backup, request: &str) -> String {
    let digest = Sha256::digest(request);
    format!("{}-v{:02x}{:02x}", id(backup), digest[0], digest[1])
}

/// A Job that is tried once, within the deadline of the backup.
fn once(backup: &Backup, name: &str, labels: BTreeMap<String, String>, mut pod: PodSpec) -> Job {
    pod.restart_policy = Some("Never".into());
    if let Some(container) = pod.containers.first_mut() {
        container.termination_message_policy = Some("FallbackToLogsOnError".into());
    }
    Job {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: backup.namespace(),
            labels: Some(labels.clone()),
            owner_references: backup.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            active_deadline_seconds: Some(backup.spec.deadline_seconds.into()),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

/// Whether it has ended, well or not.
pub(super) fn is_over(job: &Job) -> bool {
    condition(job, "Complete").is_some() || condition(job, "Failed").is_some()
}

/// What there is of a Job, with its Pods, of which `read` reads the last words.
pub(super) fn seen<R>(job: &Job, pods: &[Pod], read: impl FnOnce(&str) -> Result<R, RecordError>) -> JobSeen<R> {
    let words = pods.iter().find_map(last_words);
    if condition(job, "Complete").is_some() {
        return JobSeen::Done(read(&words.unwrap_or_default()).map_err(|error| error.to_string()));
    }
    let Some((reason, message)) = condition(job, "Failed") else { return JobSeen::Active };
    if reason == "DeadlineExceeded" {
        return JobSeen::Failed { reason, message };
    }
    let said = words.map(|words| words.trim().to_owned()).filter(|words| !words.is_empty());
    JobSeen::Failed { reason: "JobFailed".into(), message: said.map_or(message, |said| end_of(&said)) }
}

fn condition(job: &Job, type_: &str) -> Option<(String, String)> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|it| it.type_ == type_ && it.status == "True")?;
    Some((condition.reason.clone().unwrap_or_default(), condition.message.clone().unwrap_or_default()))
}

fn last_words(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    status.state.as_ref()?.terminated.as_ref()?.message.clone()
}

/// The end of what was said: why something failed is at the end of it.
fn end_of(text: &str) -> String {
    let from = text.char_indices().rev().nth(WORDS_CHARS_MAX - 1).map_or(0, |(index, _)| index);
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::backup::kind::BackupSpec;
    use crate::backup::record::{BackupRecord, sample};

    fn backup(name: &str) -> Backup {
        let target = BackupTarget { group: "g".into(), kind: "K".into(), name: "t".into() };
        let spec = BackupSpec { target, method: None, deadline_seconds: 9, schedule: None, verify: false, keep: None };
        let mut backup = Backup::new(name, spec);
        backup.metadata.uid = Some("0123456789".into());
        backup
    }

    #[test]
    fn names_are_short_enough_and_of_one_backup_only() {
        assert_eq!(id(&backup("nightly")), "nightly-01234567");
        let long = id(&backup(&"n.".repeat(60)));
        assert!(long.len() < 63 && !long.contains(".-"), "{long}");
    }

    #[test]
    fn the_job_has_the_order_and_the_deadline() {
        let pod = json!({"containers": [{"name": "b", "env": [{"name": "A", "value": "1"}]}]});
        let order = BackupOrder { id: "nightly-01234567".into(), ..BackupOrder::default() };
        let spec = job(&backup("nightly"), &order, serde_json::from_value(pod).unwrap()).spec.unwrap();
        assert_eq!((spec.active_deadline_seconds, spec.backoff_limit), (Some(9), Some(0)));
        let container = spec.template.spec.unwrap().containers.remove(0);
        let env = container.env.unwrap();
        assert_eq!(serde_json::from_str::<BackupOrder>(env[1].value.as_deref().unwrap()).unwrap(), order);
    }

    #[test]
    fn a_job_is_read_with_what_its_pod_said() {
        let job = |conditions: serde_json::Value| -> Job {
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": conditions}})).unwrap()
        };
        let pod = |message: &str| -> Vec<Pod> {
            let terminated = json!({"terminated": {"exitCode": 1, "message": message}});
            let status = json!({"name": "b", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": terminated});
            vec![serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": [status]}})).unwrap()]
        };
        let complete = json!([{"type": "Complete", "status": "True"}]);
        let failed = |reason: &str| json!([{"type": "Failed", "status": "True", "reason": reason, "message": "m"}]);
        let record = sample("b", "2026-01-01T00:00:00Z");
        let check = |conditions, pods: Vec<Pod>, expected: &str| {
            let word = match seen(&job(conditions), &pods, |words| BackupRecord::of_pod(words, "b")) {
                JobSeen::None => "none".to_owned(),
                JobSeen::Active => "active".into(),
                JobSeen::Done(Ok(record)) => format!("done {}", record.id),
                JobSeen::Done(Err(_)) => "done without a record".into(),
                JobSeen::Failed { reason, message } => format!("{reason}: {message}"),
            };
            assert_eq!(word, expected);
        };
        check(json!([]), vec![], "active");
        check(complete.clone(), pod(&record.last_words()), "done b");
        check(complete, pod("hello"), "done without a record");
        check(failed("BackoffLimitExceeded"), pod("no space left\n"), "JobFailed: no space left");
        check(failed("BackoffLimitExceeded"), vec![], "JobFailed: m");
        check(failed("DeadlineExceeded"), pod("x"), "DeadlineExceeded: m");
    }
}
