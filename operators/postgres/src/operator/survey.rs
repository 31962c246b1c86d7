//! What there is of a cluster: its members as they are, before anything is decided.

use std::collections::BTreeMap;

use windlass::prelude::*;

use super::workload;
use crate::kind::{PostgresCluster, SwitchoverStatus};
use crate::names::{self, REPORT, REVISION, SWITCHOVER};
use crate::wire::{self, Report, Role};

/// A cluster as it is seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    /// The members that are asked for.
    pub(super) wanted: Vec<String>,
    /// What each is to be made from.
    pub(super) revision: String,
    /// The settings that each is to have, by their hash.
    pub(super) settings: String,
    /// The members that there are, by name.
    pub(super) members: BTreeMap<String, Seen>,
    /// How many standbys have to have a commit.
    pub(super) synchronous: u32,
    /// What asks for another primary, and what became of the last that did.
    pub(super) request: Option<String>,
    pub(super) answered: Option<SwitchoverStatus>,
}

/// A member as it is seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What its workload was made from.
    pub(super) revision: String,
    /// What its Pod was made from; none without a Pod.
    pub(super) pod_revision: Option<String>,
    /// Whether the Pod is ready.
    pub(super) is_ready: bool,
    /// Whether its container does not get to run.
    pub(super) is_broken: bool,
    /// What it says of itself.
    pub(super) report: Option<Report>,
}

impl Survey {
    /// Looks at the members of `cluster`.
    pub(super) fn of(cluster: &PostgresCluster, world: &World) -> Self {
        let name = cluster.name_any();
        let pods = world.pods_of(cluster);
        let sets = world.children::<StatefulSet>(cluster);
        let living = sets.iter().filter(|set| set.metadata.deletion_timestamp.is_none());
        let members = living.map(|set| {
            let member = set.name_any();
            let pod = pods.iter().find(|pod| pod.name_any() == names::pod(&member));
            let seen = Seen::of(set.annotations(), pod);
            (member, seen)
        });
        Self {
            wanted: (1..=cluster.spec.instances).map(|number| names::member(&name, number)).collect(),
            revision: workload::revision(cluster),
            settings: wire::settings(&cluster.spec.parameters),
            members: members.collect(),
            synchronous: cluster.spec.synchronous.as_ref().map_or(0, |synchronous| synchronous.any),
            request: cluster.annotations().get(SWITCHOVER).cloned(),
            answered: cluster.status.as_ref().and_then(|status| status.switchover.clone()),
        }
    }

    /// The members that there are or are to be.
    pub(super) fn all(&self) -> Vec<String> {
        let more = self.members.keys().filter(|member| !self.wanted.contains(member));
        self.wanted.iter().chain(more).cloned().collect()
    }

    /// The member that takes writes.
    pub(super) fn primary(&self) -> Option<(&String, &Seen)> {
        self.members.iter().find(|(_, seen)| seen.is_ready && seen.role() == Role::Primary)
    }
}

impl Seen {
    fn of(annotations: &BTreeMap<String, String>, pod: Option<&Pod>) -> Self {
        let pod = pod.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let report = pod.and_then(|pod| serde_json::from_str(pod.annotations().get(REPORT)?).ok());
        Self {
            revision: annotations.get(REVISION).cloned().unwrap_or_default(),
            pod_revision: pod.map(|pod| pod.annotations().get(REVISION).cloned().unwrap_or_default()),
            is_ready: pod.is_some_and(is_ready),
            is_broken: pod.is_some_and(is_broken),
            report,
        }
    }

    /// What it serves as.
    pub(super) fn role(&self) -> Role {
        self.report.as_ref().map(|report| report.role).unwrap_or_default()
    }

    /// Whether it is as its workload wants it, and serves. It says first that its server stopped; that its Pod is not ready any
    /// more is noticed seconds later.
    pub(super) fn is_settled(&self) -> bool {
        self.is_ready && self.role() != Role::None && self.pod_revision.as_ref() == Some(&self.revision)
    }

    /// Whether it receives from the primary.
    pub(super) fn is_streaming(&self) -> bool {
        self.is_ready && self.report.as_ref().is_some_and(|report| report.role == Role::Replica && report.streaming)
    }

    /// Whether it was told these settings. Supervisors of earlier versions do not say which they were told.
    pub(super) fn is_told(&self, settings: &str) -> bool {
        let told = self.report.as_ref().and_then(|report| report.settings.as_ref());
        told.is_none_or(|told| told == settings)
    }

    /// Whether its server has read these settings.
    pub(super) fn has_read(&self, settings: &str) -> bool {
        let is_silent = self.report.as_ref().is_none_or(|report| report.settings.is_none());
        is_silent || (self.is_told(settings) && self.report.as_ref().is_some_and(|report| report.has_read))
    }

    /// Whether its settings wait for a restart.
    pub(super) fn is_pending(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.pending_restart)
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Its image cannot be had, or its container ends again and again.
fn is_broken(pod: &Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut waiting = statuses.filter_map(|status| status.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    waiting.any(|reason| !matches!(reason, "ContainerCreating" | "PodInitializing"))
}
