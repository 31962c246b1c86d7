//! Decides what to do next for a Pod. No I/O: a Pod, what is known about it and the time give the actions.

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::ephemeral;
use super::observed::{Observation, Observed, State};

/// What to do for a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Give it an address and volumes.
    Prepare,
    /// Start a container.
    Start(String),
    /// Show a container as waiting for the next attempt to get its image.
    BackOff(String),
    /// Tell a container to end.
    Stop(String),
    /// The Pod's time is over: fail it.
    Expire,
    /// Nothing of it runs and it is to be deleted: remove it.
    Remove,
}

/// Actions for now, and when to decide again at the latest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    pub(crate) wake: Option<Timestamp>,
}

/// Where a Pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// True when no container will run again.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What to do next.
pub(crate) fn plan(pod: &Pod, observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let deleting = pod.metadata.deletion_timestamp.is_some();
    if deleting || phase(pod, observed).is_final() {
        plan.actions = stop_all(pod, observed);
        if deleting && !observed.containers.values().any(Observation::is_active) {
            plan.actions.push(Action::Remove);
        }
        return plan;
    }
    if let Some(deadline) = deadline(pod) {
        if now >= deadline {
            plan.actions.push(Action::Expire);
            return plan;
        }
        plan.wake = Some(deadline);
    }
    if !observed.prepared {
        plan.actions.push(Action::Prepare);
        return plan;
    }
    let ephemeral = if initialised(pod, observed) { ephemeral::containers(pod) } else { Vec::new() };
    for container in due(pod, observed).into_iter().chain(&ephemeral) {
        let observation = observed.container(&container.name);
        let steps = [
            (start_time(container, pod, &observation), Action::Start(container.name.clone())),
            (observation.back_off_at(), Action::BackOff(container.name.clone())),
        ];
        for (at, action) in steps {
            match at {
                Some(at) if at <= now => plan.actions.push(action),
                Some(at) => plan.wake = Some(plan.wake.map_or(at, |wake| wake.min(at))),
                None => {}
            }
        }
    }
    plan
}

/// Whether a container is started again after it ended with a code.
pub(crate) fn restarts(pod: &Pod, container: &Container, code: i32) -> bool {
    let policy = container.restart_policy.as_deref().unwrap_or_else(|| pod_policy(pod));
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => !is_init(pod, container) || is_sidecar(container) || code != 0,
    }
}

/// Whether a container has ended and is not started again.
fn is_over(pod: &Pod, container: &Container, observation: &Observation) -> bool {
    observation.ended().is_some_and(|ended| !observation.resizing && !restarts(pod, container, ended.code))
}

/// The phase that follows from what is known.
pub(crate) fn phase(pod: &Pod, observed: &Observed) -> Phase {
    if observed.failed.is_some() {
        return Phase::Failed;
    }
    let Some(spec) = &pod.spec else { return Phase::Pending };
    for container in spec.init_containers.iter().flatten() {
        let observation = observed.container(&container.name);
        let failed = observation.ended().is_some_and(|ended| ended.code != 0);
        let ended_for_good = failed && is_over(pod, container, &observation);
        if ended_for_good && !is_sidecar(container) {
            return Phase::Failed;
        }
        if !is_initialised(container, &observation) {
            return Phase::Pending;
        }
    }
    let containers: Vec<(&Container, Observation)> =
        spec.containers.iter().map(|container| (container, observed.container(&container.name))).collect();
    let over = |(container, observation): &(&Container, Observation)| is_over(pod, container, observation);
    if !containers.is_empty() && containers.iter().all(over) {
        let good = containers.iter().all(|(_, observation)| observation.ended().is_some_and(|ended| ended.code == 0));
        return if good { Phase::Succeeded } else { Phase::Failed };
    }
    let has_run = |(_, observation): &(&Container, Observation)| {
        observation.last.is_some()
            || matches!(observation.state, State::Running { .. } | State::Stopping { .. } | State::Ended(_))
    };
    if containers.iter().all(has_run) { Phase::Running } else { Phase::Pending }
}

/// Whether every init container has done its work.
pub(crate) fn initialised(pod: &Pod, observed: &Observed) -> bool {
    incomplete(pod, observed).is_empty()
}

/// The init containers that are not done.
pub(crate) fn incomplete<'a>(pod: &'a Pod, observed: &Observed) -> Vec<&'a str> {
    let init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let open = init.filter(|container| !is_initialised(container, &observed.container(&container.name)));
    open.map(|container| container.name.as_str()).collect()
}

/// Whether a container runs beside the others though it is listed among the init containers.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn is_initialised(container: &Container, observation: &Observation) -> bool {
    if is_sidecar(container) {
        // One that ended later restarts on its own and holds nobody up.
        return observation.started || observation.last.is_some() || observation.ended().is_some();
    }
    observation.ended().is_some_and(|ended| ended.code == 0)
}

/// The containers whose turn it is: those that run beside the others, and the first init container that is not done
/// or else all of the rest.
fn due<'a>(pod: &'a Pod, observed: &Observed) -> Vec<&'a Container> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut due = Vec::new();
    for container in spec.init_containers.iter().flatten() {
        let done = is_initialised(container, &observed.container(&container.name));
        if !done || is_sidecar(container) {
            due.push(container);
        }
        if !done {
            return due;
        }
    }
    due.extend(&spec.containers);
    due
}

/// When a container is to be started; none if it is not.
fn start_time(container: &Container, pod: &Pod, observation: &Observation) -> Option<Timestamp> {
    match &observation.state {
        State::Waiting { retry, .. } => Some(retry.unwrap_or(Timestamp::MIN)),
        State::Ended(_) if !is_over(pod, container, observation) => observation.restart_at(),
        _ => None,
    }
}

/// Containers end together; those that run beside the others after them, the last one first.
fn stop_all(pod: &Pod, observed: &Observed) -> Vec<Action> {
    let sidecars = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).filter(|c| is_sidecar(c));
    let sidecars: Vec<&str> = sidecars.map(|container| container.name.as_str()).collect();
    let active = observed.containers.iter().filter(|(_, observation)| observation.is_active());
    let (beside, mut turn): (Vec<_>, Vec<_>) = active.partition(|(name, _)| sidecars.contains(&name.as_str()));
    if turn.is_empty() {
        turn.extend(beside.into_iter().max_by_key(|(name, _)| sidecars.iter().position(|sidecar| sidecar == name)));
    }
    let is_told = |observation: &Observation| matches!(observation.state, State::Stopping { .. });
    turn.into_iter().filter(|(_, found)| !is_told(found)).map(|(name, _)| Action::Stop(name.clone())).collect()
}

fn deadline(pod: &Pod) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    let start = pod.status.as_ref()?.start_time.as_ref()?.0;
    Some(start + SignedDuration::from_secs(seconds))
}

fn is_init(pod: &Pod, container: &Container) -> bool {
    let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.any(|other| other.name == container.name)
}

fn pod_policy(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
