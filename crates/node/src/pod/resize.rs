//! Changes what containers of a running Pod may use: first there must be room for it, then those that run get it.

use k8s_openapi::api::core::v1::{Container, ResourceRequirements};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::json;

use super::bounds::{self, Bounds};
use super::observed::{Observation, State};
use super::plan;
use super::promise::{Progress, Promise};
use super::worker::{RETRY, Worker};
use crate::cgroup::Limits;
use crate::room::Demand;

const RESTART: &str = "RestartContainer";

impl Worker {
    /// Brings what the Pod may use closer to what it asks for; when to try again.
    pub(super) fn resize(&mut self, now: Timestamp) -> Option<Timestamp> {
        let ends = self.pod.metadata.deletion_timestamp.is_some();
        if ends || plan::phase(&self.pod, &self.observed).is_final() {
            if !self.observed.containers.values().any(Observation::is_active) {
                self.place = None;
            }
            return None;
        }
        self.promise();
        let wake = self.give(now);
        if self.observed.resize.progress.is_some() && !self.owes() {
            self.observed.resize.progress = None;
            self.tell_resize("ResizeCompleted", "Pod resize completed", "");
        }
        wake
    }

    /// Promises what is asked for, if there is room.
    fn promise(&mut self) {
        let wanted = Promise::wanted(&self.pod);
        if wanted == self.observed.promised {
            self.observed.resize.pending = None;
            return;
        }
        let Some(place) = &self.place else { return };
        match place.change(Demand::of(&self.pod)) {
            Ok(()) => {
                self.observed.promised = wanted;
                self.observed.resize.pending = None;
                if self.owes() {
                    self.observed.resize.progress = Some(Progress::Begun);
                    self.tell_resize("ResizeStarted", "Pod resize started", "");
                }
            }
            Err(why) => {
                if self.observed.resize.pending.as_ref() != Some(&why) {
                    self.tell_resize("ResizeDeferred", "Pod resize Deferred", &why);
                }
                self.observed.resize.pending = Some(why);
            }
        }
    }

    /// Gives containers that run what was promised; when to try again what failed.
    fn give(&mut self, now: Timestamp) -> Option<Timestamp> {
        let (before, after) = (self.whole_memory(&self.observed.held), self.whole_memory(&self.observed.promised));
        let shrinks = after.is_some_and(|after| before.is_none_or(|before| after < before));
        // The Pod is to have room for its containers at every moment.
        if !shrinks {
            self.give_whole();
        }
        let names: Vec<String> = self.outstanding().map(|(name, _)| name.to_owned()).collect();
        let wake = names.iter().filter_map(|name| self.give_one(name, now)).min();
        if shrinks && names.is_empty() {
            self.give_whole();
        }
        let failed = matches!(self.observed.resize.progress, Some(Progress::Failed(_))) && self.owes();
        wake.or(failed.then(|| now + RETRY))
    }

    fn give_one(&mut self, name: &str, now: Timestamp) -> Option<Timestamp> {
        let container = self.container(name)?;
        let target = container.resources.clone().unwrap_or_default();
        let held = self.observed.held.containers.get(name).cloned().unwrap_or_default();
        if needs_restart(&container, &held) {
            self.observed.containers.get_mut(name)?.resizing = true;
            self.kill(name, self.grace(), format!("Container {name} resize requires restart"));
            return None;
        }
        if let Some((tried, again)) = self.attempts.get(name)
            && *tried == target
            && now < *again
        {
            return Some(*again);
        }
        let bounds = Bounds { resources: target.clone(), pod: self.whole_memory(&self.observed.promised) };
        self.tasks.get(name)?.bounds.send_replace(bounds);
        let again = now + RETRY;
        self.attempts.insert(name.to_owned(), (target, again));
        Some(again)
    }

    /// Takes in what became of the attempt to hold a container to other limits.
    pub(super) fn take_rebound(&mut self, name: &str, resources: ResourceRequirements, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => {
                self.attempts.remove(name);
                self.observed.held.containers.insert(name.to_owned(), resources);
            }
            Err(why) => self.fail_resize(why),
        }
    }

    /// Holds the Pod as a whole to what it was promised.
    fn give_whole(&mut self) {
        if self.observed.held.whole == self.observed.promised.whole {
            return;
        }
        let uid = self.pod.uid().unwrap_or_default();
        let limits = Limits::of_pod(&self.observed.promised.imposed(&self.pod));
        let used: u64 = self.context.live.of(&uid).iter().map(|live| bounds::memory(&live.inside)).sum();
        if let Some(limit) = limits.memory.filter(|limit| used >= *limit) {
            let why = format!(
                "cannot decrease memory limits: attempting to set pod memory limit ({limit}) below current usage ({used})"
            );
            return self.fail_resize(why);
        }
        if let Ok(cgroups) = &self.context.cgroups
            && let Err(error) = cgroups.change_pod(&uid, &limits)
        {
            return self.fail_resize(error.to_string());
        }
        for (name, orders) in &self.tasks {
            let resources = self.observed.held.containers.get(name).cloned().unwrap_or_default();
            orders.bounds.send_replace(Bounds { resources, pod: limits.memory });
        }
        self.observed.held.whole.clone_from(&self.observed.promised.whole);
    }

    fn fail_resize(&mut self, why: String) {
        let failed = Some(Progress::Failed(why.clone()));
        if self.observed.resize.progress != failed {
            self.tell_resize("ResizeError", "Pod resize error", &why);
        }
        self.observed.resize.progress = failed;
    }

    /// The limit of memory of the Pod as a whole.
    pub(super) fn whole_memory(&self, promise: &Promise) -> Option<u64> {
        Limits::of(promise.whole.as_ref()).memory
    }

    /// Whether something that runs has not what was promised.
    fn owes(&self) -> bool {
        let whole =
            !self.observed.held.containers.is_empty() && self.observed.held.whole != self.observed.promised.whole;
        whole || self.outstanding().next().is_some()
    }

    /// The containers that run and are held to something else than they were promised.
    fn outstanding(&self) -> impl Iterator<Item = (&str, &ResourceRequirements)> {
        let runs = |name: &str| {
            self.observed.containers.get(name).is_some_and(|one| matches!(one.state, State::Running { .. }))
        };
        let promised = self.observed.promised.containers.iter();
        promised
            .filter(move |(name, target)| runs(name) && self.observed.held.containers.get(*name) != Some(*target))
            .map(|(name, target)| (name.as_str(), target))
    }

    fn tell_resize(&self, reason: &str, begins: &str, error: &str) {
        let mut summary = json!({"generation": self.pod.metadata.generation, "containers": self.wishes()});
        if !error.is_empty() {
            summary["error"] = json!(error);
        }
        let message = format!("{begins}: {summary}");
        match reason {
            "ResizeStarted" | "ResizeCompleted" => self.context.events.normal(&*self.pod, None, reason, message),
            _ => self.context.events.warning(&*self.pod, None, reason, message),
        }
    }

    fn wishes(&self) -> Vec<serde_json::Value> {
        let spec = self.pod.spec.as_ref();
        let all = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
        all.map(|one| json!({"name": one.name, "resources": one.resources})).collect()
    }
}

/// Whether a container wants to be started anew for a change of what it is held to.
fn needs_restart(container: &Container, held: &ResourceRequirements) -> bool {
    let target = container.resources.clone().unwrap_or_default();
    let amount = |from: &ResourceRequirements, name: &str| {
        let of =
            |list: &Option<std::collections::BTreeMap<_, _>>| list.as_ref().and_then(|list| list.get(name)).cloned();
        (of(&from.limits), of(&from.requests))
    };
    let policies = container.resize_policy.iter().flatten().filter(|policy| policy.restart_policy == RESTART);
    policies.into_iter().any(|policy| amount(&target, &policy.resource_name) != amount(held, &policy.resource_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_decides_about_a_restart() {
        let container = |cpu: &str, memory: &str| -> Container {
            serde_json::from_value(json!({"name": "c", "resources": {"limits": {"cpu": cpu, "memory": memory}},
                "resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"},
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"}]}))
            .unwrap()
        };
        let held = container("1", "1Gi").resources.unwrap();
        assert!(!needs_restart(&container("2", "1Gi"), &held));
        assert!(needs_restart(&container("1", "2Gi"), &held));
    }
}
