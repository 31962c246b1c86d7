//! The readiness of what runs Pods.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Readiness;

/// What a workload says of its Pods.
struct Rollout {
    wanted: i32,
    /// Of the present template.
    updated: i32,
    ready: i32,
    /// Of any template.
    all: i32,
}

impl Rollout {
    fn readiness(&self) -> Readiness {
        let Self { wanted, updated, ready, all } = *self;
        if updated < wanted {
            return Readiness::NotYet(format!("{updated} of {wanted} Pods are updated"));
        }
        if all > wanted {
            return Readiness::NotYet(format!("{} old Pods are still there", all - wanted));
        }
        Readiness::when(ready >= wanted, format!("{ready} of {wanted} Pods are ready"))
    }
}

/// A status of an older generation says nothing of the present one.
fn unless_stale(meta: &ObjectMeta, observed: Option<i64>, judge: impl FnOnce() -> Readiness) -> Readiness {
    if observed >= meta.generation { judge() } else { Readiness::NotYet("its change is not taken up yet".into()) }
}

pub(super) fn deployment(deployment: &Deployment) -> Readiness {
    let status = deployment.status.clone().unwrap_or_default();
    let stuck = status.conditions.iter().flatten().find(|condition| {
        condition.type_ == "Progressing" && condition.reason.as_deref() == Some("ProgressDeadlineExceeded")
    });
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    unless_stale(&deployment.metadata, status.observed_generation, || match stuck {
        Some(condition) => Readiness::Failed(condition.message.clone().unwrap_or_default()),
        None => Rollout {
            wanted,
            updated: status.updated_replicas.unwrap_or(0),
            ready: status.available_replicas.unwrap_or(0),
            all: status.replicas.unwrap_or(0),
        }
        .readiness(),
    })
}

pub(super) fn stateful_set(set: &StatefulSet) -> Readiness {
    let status = set.status.clone().unwrap_or_default();
    let spec = set.spec.clone().unwrap_or_default();
    let wanted = spec.replicas.unwrap_or(1);
    let strategy = spec.update_strategy.unwrap_or_default();
    let is_by_hand = strategy.type_.as_deref() == Some("OnDelete");
    let kept_back = strategy.rolling_update.and_then(|rolling| rolling.partition).unwrap_or(0).clamp(0, wanted);
    let is_updated = status.current_revision == status.update_revision;
    let updated = match status.updated_replicas.unwrap_or(0) {
        // Pods that are to stay as they are count as updated, and so do all when there is nothing to update.
        _ if is_by_hand || is_updated => wanted,
        updated => updated + kept_back,
    };
    let ready = status.ready_replicas.unwrap_or(0);
    unless_stale(&set.metadata, status.observed_generation, || {
        Rollout { wanted, updated, ready, all: status.replicas }.readiness()
    })
}

pub(super) fn daemon_set(set: &DaemonSet) -> Readiness {
    let status = set.status.clone().unwrap_or_default();
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.clone()).unwrap_or_default();
    let wanted = status.desired_number_scheduled;
    let is_by_hand = strategy.type_.as_deref() == Some("OnDelete");
    let updated = if is_by_hand { wanted } else { status.updated_number_scheduled.unwrap_or(0) };
    let ready = status.number_available.unwrap_or(0);
    unless_stale(&set.metadata, status.observed_generation, || {
        Rollout { wanted, updated, ready, all: wanted }.readiness()
    })
}

pub(super) fn replica_set(set: &ReplicaSet) -> Readiness {
    let status = set.status.clone().unwrap_or_default();
    let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let ready = status.available_replicas.unwrap_or(0);
    unless_stale(&set.metadata, status.observed_generation, || {
        Rollout { wanted, updated: wanted, ready, all: status.replicas }.readiness()
    })
}

pub(super) fn job(job: &Job) -> Readiness {
    let status = job.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is = |type_: &str| conditions.iter().find(|it| it.type_ == type_ && it.status == "True");
    if let Some(failed) = is("Failed") {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        return Readiness::Failed(format!("{}: {}", text(&failed.reason), text(&failed.message)));
    }
    if is("Complete").is_some() {
        return Readiness::Ready;
    }
    let spec = job.spec.clone().unwrap_or_default();
    if spec.suspend == Some(true) {
        return Readiness::NotYet("it is suspended".into());
    }
    let (done, wanted) = (status.succeeded.unwrap_or(0), spec.completions.unwrap_or(1));
    Readiness::NotYet(format!("{done} of {wanted} Pods are complete"))
}

pub(super) fn pod(pod: &Pod) -> Readiness {
    let status = pod.status.clone().unwrap_or_default();
    match status.phase.as_deref() {
        Some("Succeeded") => Readiness::Ready,
        Some("Failed") => {
            let why = status.message.or(status.reason).unwrap_or_else(|| "its containers have failed".into());
            Readiness::Failed(why)
        }
        phase => {
            let conditions = status.conditions.unwrap_or_default();
            let is_ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
            Readiness::when(is_ready, format!("it is {}", phase.unwrap_or("Pending")))
        }
    }
}
