//! One step of a Deployment: from what is there to what to write.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::scale::{self, Scale};
use super::{revision, status, template};
use crate::{owners, pods};

/// What a Deployment sees: itself, the ReplicaSets it controls, and their Pods.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) deployment: &'a Deployment,
    pub(crate) sets: &'a [&'a ReplicaSet],
    pub(crate) pods: &'a [&'a Pod],
    pub(crate) now: Timestamp,
}

/// What to write, in this order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// A ReplicaSet to make for a template that has none.
    pub(crate) create: Option<Box<ReplicaSet>>,
    /// The current ReplicaSet with its annotations put right.
    pub(crate) update: Option<Box<ReplicaSet>>,
    /// Sizes to change (or to confirm, where `from` equals `to`).
    pub(crate) scale: Vec<Scale>,
    /// Old ReplicaSets beyond the history limit.
    pub(crate) delete: Vec<String>,
    /// The revision that the Deployment's own annotation has to show.
    pub(crate) revision: Option<i64>,
    pub(crate) status: DeploymentStatus,
    /// When to look again although nothing changed.
    pub(crate) again: Option<Timestamp>,
}

/// Decides the next step.
pub(crate) fn plan(observed: Observed<'_>) -> Plan {
    let Observed { deployment, sets, now, .. } = observed;
    let new = template::current(deployment, sets);
    let old: Vec<&ReplicaSet> =
        sets.iter().copied().filter(|set| Some(set.name_any()) != new.map(|n| n.name_any())).collect();
    let mut plan = if deployment.metadata.deletion_timestamp.is_some() {
        Plan { status: status::counts(deployment, new, &old, now), ..Plan::default() }
    } else if is_paused(deployment) || (!scale::is_recreate(deployment) && scale::was_resized(deployment, sets)) {
        resize(observed, new, &old)
    } else {
        rollout(observed, new, &old)
    };
    plan.again = status::deadline(deployment, &plan.status);
    plan
}

/// While paused, or after the number of replicas changed: sizes only, no new template.
fn resize(observed: Observed<'_>, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> Plan {
    let Observed { deployment, now, .. } = observed;
    let mut plan = Plan { status: status::counts(deployment, new, old, now), ..Plan::default() };
    plan.scale = scale::proportional(deployment, new, old);
    if let Some(new) = new {
        adopt_revision(&mut plan, deployment, new, old);
    }
    if is_paused(deployment) {
        plan.delete = beyond_history(deployment, old);
    }
    note_pause(deployment, &mut plan.status, now);
    plan
}

fn rollout(observed: Observed<'_>, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) -> Plan {
    let Observed { deployment, pods, now, .. } = observed;
    let mut plan = Plan { status: status::rollout(deployment, new, old, now), ..Plan::default() };
    note_pause(deployment, &mut plan.status, now);
    if scale::is_recreate(deployment) {
        plan.scale = old.iter().filter(|set| scale::size(set) > 0).map(|set| zero(set)).collect();
        if !plan.scale.is_empty() || old_pods_run(new, old, pods) {
            return plan;
        }
    }
    let Some(new) = new else {
        let set = template::replica_set(deployment, old, revision::next(old));
        plan.revision = Some(revision::next(old));
        let message = format!("Created new replica set \"{}\"", set.name_any());
        status::note(deployment, &mut plan.status, ("True", "NewReplicaSetCreated"), &message, now);
        plan.create = Some(Box::new(set));
        return plan;
    };
    adopt_revision(&mut plan, deployment, new, old);
    if status::progress_reason(&plan.status).is_none() {
        let message = format!("Found new replica set \"{}\"", new.name_any());
        status::note(deployment, &mut plan.status, ("True", "FoundNewReplicaSet"), &message, now);
    }
    plan.scale = if scale::is_recreate(deployment) {
        let wanted = scale::wanted(deployment);
        let change = Scale { name: new.name_any(), from: scale::size(new), to: wanted };
        Vec::from_iter((scale::size(new) != wanted).then_some(change))
    } else {
        scale::rolling(deployment, new, old)
    };
    if plan.scale.is_empty() && status::is_complete(deployment, &plan.status) {
        plan.delete = beyond_history(deployment, old);
    }
    plan
}

/// Brings the annotations of the current ReplicaSet, and the Deployment's own, up to date.
fn adopt_revision(plan: &mut Plan, deployment: &Deployment, new: &ReplicaSet, old: &[&ReplicaSet]) {
    let mut updated = new.clone();
    let next = revision::next(old);
    revision::annotate(deployment, &mut updated, next);
    let min_ready = deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
    updated.spec.get_or_insert_default().min_ready_seconds = min_ready;
    plan.revision = Some(revision::of(&updated));
    if updated != *new {
        plan.update = Some(Box::new(updated));
    }
}

fn is_paused(deployment: &Deployment) -> bool {
    deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or(false)
}

/// A pause stops the deadline, and its end starts it anew.
fn note_pause(deployment: &Deployment, status: &mut DeploymentStatus, now: Timestamp) {
    let was_paused = status::progress_reason(status) == Some("DeploymentPaused");
    match (is_paused(deployment), was_paused) {
        (true, false) => {
            status::note(deployment, status, ("Unknown", "DeploymentPaused"), "Deployment is paused", now);
        }
        (false, true) => {
            status::note(deployment, status, ("Unknown", "DeploymentResumed"), "Deployment is resumed", now);
        }
        _ => {}
    }
}

fn old_pods_run(new: Option<&ReplicaSet>, old: &[&ReplicaSet], pods: &[&Pod]) -> bool {
    let counted = old.iter().any(|set| set.status.as_ref().is_some_and(|status| status.replicas > 0));
    let new_uid = new.and_then(|new| new.metadata.uid.as_deref());
    let is_old = |pod: &&&Pod| owners::controller(&pod.metadata).map(|owner| owner.uid.as_str()) != new_uid;
    counted || pods.iter().filter(is_old).any(|pod| !pods::is_finished(pod))
}

/// The oldest revisions beyond `revisionHistoryLimit` that have no Pod and are not on their way to one.
fn beyond_history(deployment: &Deployment, old: &[&ReplicaSet]) -> Vec<String> {
    let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let mut alive: Vec<&ReplicaSet> =
        old.iter().copied().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
    let surplus = alive.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
    alive.sort_by_key(|set| (revision::of(set), set.creation_timestamp()));
    let is_idle = |set: &&ReplicaSet| {
        let status = set.status.clone().unwrap_or_default();
        status.replicas == 0 && scale::size(set) == 0 && status.observed_generation >= set.metadata.generation
    };
    alive.into_iter().take(surplus).filter(is_idle).map(|set| set.name_any()).collect()
}

fn zero(set: &ReplicaSet) -> Scale {
    Scale { name: set.name_any(), from: scale::size(set), to: 0 }
}
