//! How a run of a container is held to its limits: by a control group where there are some, by its priority elsewhere.

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::ResourceExt;

use super::container::{Job, Run};
use super::inside::Inside;
use super::refusal::Refusal;
use super::watchdog::{Excess, Watchdog};
use crate::cgroup::{Controller, Group, Limits};
use crate::sandbox::ContainerSpec;
use crate::usage;

/// What a run of a container may use.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Its own resources.
    pub(crate) resources: ResourceRequirements,
    /// The memory that its Pod may use as a whole.
    pub(crate) pod: Option<u64>,
}

impl Job {
    /// Adds to the description of a container what holds it to its limits.
    pub(super) fn bound(&self, spec: &mut ContainerSpec) -> Result<(), Refusal> {
        let limits = Limits::of(self.container.resources.as_ref());
        let uid = self.pod.uid().unwrap_or_default();
        let group = self.context.cgroups.as_ref().ok();
        let run = (uid.as_str(), self.container.name.as_str(), self.number);
        let made = group.map(|cgroups| cgroups.make(run, &limits, &Limits::of_pod(&self.pod))).transpose();
        spec.group = made.map_err(|error| Refusal {
            reason: "CreateContainerError",
            message: format!("make its control group: {error}"),
        })?;
        if !spec.group.as_ref().is_some_and(|group| group.has(Controller::Cpu)) {
            spec.nice = limits.nice();
        }
        Ok(())
    }

    /// Removes the control group of this run, with whatever is left in it. To be called where it may block.
    pub(super) fn unbound(&self) {
        if let Ok(cgroups) = &self.context.cgroups {
            cgroups.remove((&self.pod.uid().unwrap_or_default(), &self.container.name, self.number));
        }
    }
}

impl Run {
    /// Holds the container to other limits from now on; an error says why it stays at those that it has.
    pub(super) fn rebound(&self, watchdog: &mut Watchdog, wanted: &Bounds) -> Result<(), String> {
        let limits = Limits::of(Some(&wanted.resources));
        let lower = |limit: &u64| watchdog.memory().is_none_or(|now| *limit < now);
        if let Some(limit) = limits.memory.filter(lower) {
            let used = memory(&self.inside);
            if used >= limit {
                let name = &self.inside.container.name;
                return Err(format!(
                    "cannot decrease memory limits: attempting to set container \"{name}\" memory limit ({limit}) below \
                     current usage ({used})"
                ));
            }
        }
        if let Some(group) = &self.inside.group {
            group.change(&limits).map_err(|error| error.to_string())?;
        }
        watchdog.hold(wanted);
        Ok(())
    }
}

/// The memory that a running container uses.
pub(super) fn memory(inside: &Inside) -> u64 {
    usage::of(inside.init, inside.group.as_ref()).memory
}

/// The reason that the status gives for the end of a container.
pub(super) fn reason(code: i32, excess: Option<Excess>, group: Option<&Group>) -> &'static str {
    let out_of_memory = || code != 0 && group.is_some_and(|group| group.memory_kills() > 0);
    match excess {
        Some(excess) => excess.reason(),
        None if out_of_memory() => "OOMKilled",
        None if code == 0 => "Completed",
        None => "Error",
    }
}
