//! How a run of a container is held to its limits: by a control group where there are some, by its priority elsewhere.

use kube::ResourceExt;

use super::container::Job;
use super::refusal::Refusal;
use super::watchdog::Excess;
use crate::cgroup::{Controller, Group, Limits};
use crate::sandbox::ContainerSpec;

impl Job {
    /// Adds to the description of a container what holds it to its limits.
    pub(super) fn bound(&self, spec: &mut ContainerSpec) -> Result<(), Refusal> {
        let limits = Limits::of(&self.container);
        let uid = self.pod.uid().unwrap_or_default();
        let group = self.context.cgroups.as_ref().ok();
        let made = group.map(|cgroups| cgroups.make((&uid, &self.container.name, self.number), &limits)).transpose();
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
