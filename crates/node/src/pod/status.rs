//! The status of a Pod as it follows from what the node knows.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    HostIP, Pod, PodCondition, PodIP, PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use windlass_schema::pod_resources;

use super::downward::Addresses;
use super::ephemeral;
use super::observed::{Ended, Observation, Observed, State};
use super::plan::{self, Phase};
use super::promise::{Progress, Promise};

/// The reason of a container that is on its way.
const CREATING: &str = "ContainerCreating";

/// The status to write; conditions of other writers are not in it.
pub(crate) fn status(pod: &Pod, observed: &Observed, addresses: Option<Addresses>, now: Timestamp) -> PodStatus {
    let spec = pod.spec.clone().unwrap_or_default();
    let phase = plan::phase(pod, observed);
    let before = pod.status.clone().unwrap_or_default();
    let describe = |containers: &[Container]| -> Vec<ContainerStatus> {
        containers.iter().map(|container| container_status(pod, container, observed, now)).collect()
    };
    let main = describe(&spec.containers);
    let init = describe(spec.init_containers.as_deref().unwrap_or_default());
    let mut ephemeral = describe(&ephemeral::containers(pod));
    ephemeral.iter_mut().for_each(|status| status.ready = false);
    let mut conditions = conditions(pod, observed, &main, (phase, now));
    conditions.extend(resize_conditions(pod, observed, now));
    let (allocated_resources, resources) = whole(pod, observed);
    let pod_address = addresses.map(|addresses| addresses.pod.to_string());
    let host_address = addresses.map(|addresses| addresses.host.to_string());
    PodStatus {
        phase: Some(phase.name().to_owned()),
        reason: observed.failed.as_ref().map(|(reason, _)| reason.clone()),
        message: observed.failed.as_ref().map(|(_, message)| message.clone()),
        start_time: before.start_time.or(Some(Time(now))),
        host_ip: host_address.clone(),
        host_ips: host_address.map(|ip| vec![HostIP { ip }]),
        pod_ip: pod_address.clone(),
        pod_ips: pod_address.map(|ip| vec![PodIP { ip }]),
        observed_generation: pod.metadata.generation,
        container_statuses: Some(main),
        init_container_statuses: (!init.is_empty()).then_some(init),
        ephemeral_container_statuses: (!ephemeral.is_empty()).then_some(ephemeral),
        conditions: Some(conditions),
        allocated_resources,
        resources,
        ..PodStatus::default()
    }
}

fn container_status(pod: &Pod, container: &Container, observed: &Observed, now: Timestamp) -> ContainerStatus {
    let observation = observed.container(&container.name);
    let running = matches!(observation.state, State::Running { .. } | State::Stopping { .. });
    let state = state(pod, container, observed, now);
    // An ended container that waits for its next start shows its end as the last state.
    let last = if state.terminated.is_none() && observation.ended().is_some() {
        observation.ended().cloned()
    } else {
        observation.last.clone()
    };
    let is_init =
        pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).any(|c| c.name == container.name);
    let done = observation.ended().is_some_and(|ended| ended.code == 0);
    let promised = observed.promised.containers.get(&container.name);
    let held = observed.held.containers.get(&container.name).or(promised);
    let ready = if is_init && !plan::is_sidecar(container) { done } else { running && observation.ready };
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        image_id: observation.image_id.clone(),
        container_id: (!observation.image_id.is_empty()).then(|| {
            format!("windlass://{}/{}/{}", pod.uid().unwrap_or_default(), container.name, observation.restarts)
        }),
        ready,
        started: Some(running && observation.started),
        restart_count: observation.restarts,
        last_state: Some(last.map_or_else(ContainerState::default, |ended| terminated(&ended))),
        state: Some(state),
        resources: held.cloned().filter(|_| running),
        allocated_resources: promised.filter(|_| running).and_then(|own| own.requests.clone()),
        ..ContainerStatus::default()
    }
}

fn state(pod: &Pod, container: &Container, observed: &Observed, now: Timestamp) -> ContainerState {
    let observation = observed.container(&container.name);
    match &observation.state {
        State::Running { since } | State::Stopping { since } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
            ..ContainerState::default()
        },
        State::Ended(ended) => match observation.restart_at() {
            Some(at) if at > now && will_restart(pod, container, observed, ended) => {
                let message = crash_message(pod, container, &observation);
                waiting("CrashLoopBackOff", &message)
            }
            _ => terminated(ended),
        },
        State::Waiting { reason, message, .. } => {
            let obstacle = observed.obstacle.as_deref().unwrap_or_default();
            let message = if message.is_empty() { obstacle } else { message };
            waiting(if reason == CREATING { creating(pod, observed) } else { reason }, message)
        }
        // What kept it from starting is shown until it has started.
        State::Starting { message } => match &observation.refusal {
            Some((reason, why)) => waiting(reason, why),
            None => waiting(creating(pod, observed), message),
        },
    }
}

/// What a container waits for that has not been started yet.
fn creating(pod: &Pod, observed: &Observed) -> &'static str {
    if plan::initialised(pod, observed) { CREATING } else { "PodInitializing" }
}

fn will_restart(pod: &Pod, container: &Container, observed: &Observed, ended: &Ended) -> bool {
    pod.metadata.deletion_timestamp.is_none() && observed.failed.is_none() && plan::restarts(pod, container, ended.code)
}

/// The text that goes with `CrashLoopBackOff`.
pub(crate) fn crash_message(pod: &Pod, container: &Container, observation: &Observation) -> String {
    let (delay, name) = (observation.restart_delay().as_secs(), &container.name);
    format!("back-off {delay}s restarting failed container={name} pod={}", full_name(pod))
}

/// The event about a container that keeps on failing: the same text each time, so that it is counted.
pub(crate) fn crash_event(pod: &Pod, container: &str) -> String {
    format!("Back-off restarting failed container {container} in pod {}", full_name(pod))
}

fn full_name(pod: &Pod) -> String {
    format!("{}_{}({})", pod.name_any(), pod.namespace().unwrap_or_default(), pod.uid().unwrap_or_default())
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()).filter(|message| !message.is_empty()),
        }),
        ..ContainerState::default()
    }
}

fn terminated(ended: &Ended) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: ended.code,
            reason: Some(ended.reason.clone()),
            message: ended.message.clone(),
            started_at: ended.started.map(Time),
            finished_at: Some(Time(ended.finished)),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// One of the node's conditions: type, whether it holds, and why not.
type Judgement = (&'static str, bool, Option<(&'static str, String)>);

fn conditions(
    pod: &Pod,
    observed: &Observed,
    main: &[ContainerStatus],
    (phase, now): (Phase, Timestamp),
) -> Vec<PodCondition> {
    let unready: Vec<&str> = main.iter().filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
    let containers_ready = unready.is_empty() && !phase.is_final();
    let why_unready = || match phase {
        Phase::Succeeded => Some(("PodCompleted", String::new())),
        Phase::Failed => Some(("PodFailed", String::new())),
        _ => Some(("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))),
    };
    let closed = closed_gates(pod);
    let ready = containers_ready && closed.is_empty();
    let why_not_ready = || {
        if containers_ready { Some(("ReadinessGatesNotReady", closed.clone())) } else { why_unready() }
    };
    let initialised = plan::initialised(pod, observed) || phase == Phase::Succeeded;
    let not_initialised = || {
        let incomplete = plan::incomplete(pod, observed).join(" ");
        Some(("ContainersNotInitialized", format!("containers with incomplete status: [{incomplete}]")))
    };
    let judgements: [Judgement; 5] = [
        ("PodReadyToStartContainers", observed.prepared && !phase.is_final(), None),
        ("Initialized", initialised, (!initialised).then(not_initialised).flatten()),
        ("Ready", ready, (!ready).then(why_not_ready).flatten()),
        ("ContainersReady", containers_ready, (!containers_ready).then(why_unready).flatten()),
        ("PodScheduled", true, None),
    ];
    judgements.into_iter().map(|judgement| condition(pod, judgement, now)).collect()
}

/// What is said of a change of resources that is under way.
fn resize_conditions(pod: &Pod, observed: &Observed, now: Timestamp) -> Vec<PodCondition> {
    let pending = observed.resize.pending.clone().map(|why| ("PodResizePending", Some(("Deferred", why))));
    let progress = observed.resize.progress.as_ref().map(|progress| match progress {
        Progress::Begun => ("PodResizeInProgress", None),
        Progress::Failed(why) => ("PodResizeInProgress", Some(("Error", why.clone()))),
    });
    [pending, progress].into_iter().flatten().map(|(type_, why)| condition(pod, (type_, true, why), now)).collect()
}

/// What the Pod was promised as a whole, and what it is held to.
fn whole(pod: &Pod, observed: &Observed) -> (Option<BTreeMap<String, Quantity>>, Option<ResourceRequirements>) {
    let held = if observed.held.containers.is_empty() { &observed.promised } else { &observed.held };
    let total = |promise: &Promise, side: &str| -> Option<BTreeMap<String, Quantity>> {
        let pod = serde_json::to_value(promise.imposed(pod)).ok()?;
        let amounts = pod_resources::total(&pod, side).into_iter();
        let amounts = amounts.map(|(name, amount)| (name, Quantity(amount.to_string()))).collect::<BTreeMap<_, _>>();
        (!amounts.is_empty()).then_some(amounts)
    };
    let (limits, requests) = (total(held, "limits"), total(held, "requests"));
    let is_some = limits.is_some() || requests.is_some();
    let resources = is_some.then(|| ResourceRequirements { limits, requests, ..ResourceRequirements::default() });
    (total(&observed.promised, "requests"), resources)
}

/// A transition time changes only with the condition's status.
fn condition(pod: &Pod, (type_, holds, why): Judgement, now: Timestamp) -> PodCondition {
    let status = if holds { "True" } else { "False" };
    let before = pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).find(|old| old.type_ == type_);
    let unchanged = before.filter(|old| old.status == status);
    let (reason, message) = why.map_or((None, None), |(reason, message)| (Some(reason.to_owned()), Some(message)));
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason,
        message: message.filter(|message| !message.is_empty()),
        last_transition_time: unchanged.and_then(|old| old.last_transition_time.clone()).or(Some(Time(now))),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// Readiness gates whose conditions do not hold, as one text.
fn closed_gates(pod: &Pod) -> String {
    let gates = pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten());
    let holds = |gate: &str| {
        let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == gate && condition.status == "True")
    };
    let closed = gates.filter(|gate| !holds(&gate.condition_type));
    closed
        .map(|gate| {
            format!(
                "corresponding condition of pod readiness gate \"{}\" does not exist or is not True.",
                gate.condition_type
            )
        })
        .collect::<Vec<_>>()
        .join(" ")
}
