//! How a run of a container is kept apart: its limits, by a control group where there are some and by its priority
//! elsewhere, and the network of its Pod.

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::ResourceExt;

use super::container::{Job, Run};
use super::inside::Inside;
use super::refusal::Refusal;
use super::watchdog::{Excess, Watchdog};
use crate::cgroup::{Controller, Group, Limits};
use crate::network::Network;
use crate::runc::{Contained, Runc};
use crate::sandbox::{ContainerSpec, Mapping};
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
    /// Adds to the description of a container what holds it to its limits, and the network that it is in.
    pub(super) fn bound(&self, spec: &mut ContainerSpec) -> Result<(), Refusal> {
        let limits = Limits::of(self.container.resources.as_ref());
        let uid = self.pod.uid().unwrap_or_default();
        spec.contained = self.contained(spec);
        spec.network = self.network().map(|network| network.space(&uid));
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

    /// What runc is to know this run as, if it is to run it. A program that must have the rights of the one who started
    /// Windlass under another number cannot be had there; what looks into a container is run by whoever runs that.
    fn contained(&self, spec: &ContainerSpec) -> Option<Contained> {
        let runc = self.context.config.runc.clone()?;
        let is_meant = match spec.neighbour {
            Some(neighbour) => neighbour.is_contained,
            None => Mapping::wanted(&spec.root, &spec.process.user) == Mapping::Full,
        };
        is_meant.then(|| Contained { runc, id: self.run_name() })
    }

    fn run_name(&self) -> String {
        Runc::id((&self.pod.uid().unwrap_or_default(), &self.container.name, self.number))
    }

    /// The network that the Pod has a namespace in.
    pub(super) fn network(&self) -> Option<&Network> {
        self.context.config.network.as_ref().filter(|_| !self.host_network())
    }

    /// Removes what runc knows of this run, and its control group with whatever is left in it. To be called where it may block.
    pub(super) fn unbound(&self) {
        if let Some(runc) = &self.context.config.runc {
            runc.remove(&self.run_name());
        }
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
