//! The Pods of a Job: what they look like, and what became of them.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use kube::ResourceExt;

use super::per_index::{self, Failures};
use crate::{pods, template};

/// Keeps a Pod until its end has been counted.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// What became of a Pod, as far as its Job is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Active,
    Succeeded,
    Failed,
}

/// The fate of a Pod. One that is deleted before its end has failed, unless the Job waits for the real end.
pub(crate) fn fate(job: &Job, pod: &Pod) -> Fate {
    match pods::phase(pod) {
        "Succeeded" => Fate::Succeeded,
        "Failed" => Fate::Failed,
        _ if pods::is_terminating(pod) && !replaces_failed_only(job) => Fate::Failed,
        _ => Fate::Active,
    }
}

/// Whether a Pod that is leaving is replaced only after its end. How it ends matters to a failure policy.
pub(crate) fn replaces_failed_only(job: &Job) -> bool {
    let Some(spec) = job.spec.as_ref() else { return false };
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

/// Whether the Job gives each Pod an index.
pub(crate) fn is_indexed(job: &Job) -> bool {
    job.spec.as_ref().and_then(|spec| spec.completion_mode.as_deref()) == Some("Indexed")
}

/// The index of a Pod.
pub(crate) fn index(pod: &Pod) -> Option<i32> {
    pod.annotations().get(COMPLETION_INDEX)?.parse().ok()
}

/// Whether the end of the Pod is still to be counted.
pub(crate) fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == TRACKING)
}

/// When the last container of a Pod ended.
pub(crate) fn finished_at(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let ended = statuses
        .iter()
        .filter_map(|container| container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0));
    ended.max()
}

/// A new Pod of the Job, with an index if it has such, and then the failures of that index.
pub(crate) fn make(job: &Job, index: Option<i32>, failures: Failures) -> Pod {
    let template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let mut pod = template::pod(job, &template);
    pod.finalizers_mut().push(TRACKING.to_owned());
    let Some(index) = index else { return pod };
    pod.metadata.generate_name = Some(format!("{}-{index}-", job.name_any()));
    pod.annotations_mut().insert(COMPLETION_INDEX.to_owned(), index.to_string());
    pod.labels_mut().insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if per_index::limit(job).is_some() {
        per_index::carry(&mut pod, failures);
    }
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{}-{index}", job.name_any()));
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        let variables = container.env.get_or_insert_default();
        if variables.iter().any(|variable| variable.name == "JOB_COMPLETION_INDEX") {
            continue;
        }
        let field = ObjectFieldSelector {
            api_version: None,
            field_path: format!("metadata.annotations['{COMPLETION_INDEX}']"),
        };
        variables.push(EnvVar {
            name: "JOB_COMPLETION_INDEX".to_owned(),
            value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
            ..EnvVar::default()
        });
    }
    pod
}
