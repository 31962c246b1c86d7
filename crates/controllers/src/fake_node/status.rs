//! What a node that runs nothing says about its Pods.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec,
    PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::container::{self, Moment, Restart};
use super::rule::{self, Rule, RuleError};
use crate::pods;

/// A Pod at a moment: its status, and when it will be another one.
#[derive(Debug)]
pub(super) struct Outlook {
    pub(super) status: PodStatus,
    pub(super) next: Option<Timestamp>,
    /// What its annotations have that cannot be understood.
    pub(super) error: Option<RuleError>,
}

/// The status of a Pod on the node with this address, by the rules of its containers.
pub(super) fn outlook(pod: &Pod, host: &str, address: impl FnOnce() -> String, now: Timestamp) -> Outlook {
    let before = pod.status.clone().unwrap_or_default();
    if pods::is_finished(pod) {
        return Outlook { status: before, next: None, error: None };
    }
    let begin = before.start_time.as_ref().map_or(now, |time| time.0);
    let deadline = deadline(pod, begin);
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Outlook { status: overdue(before), next: None, error: None };
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let (moments, error) = moments(pod, &spec, begin, now);
    let next = moments.iter().filter_map(|moment| moment.next).chain(deadline).min();
    let containers: Vec<ContainerStatus> = moments.into_iter().map(|moment| moment.status).collect();
    let phase = phase(&containers, Restart::of(spec.restart_policy.as_deref()));
    let is_over = matches!(phase, "Succeeded" | "Failed");
    let has_begun = phase != "Pending";
    let known = before.pod_ip.clone().filter(|address| !address.is_empty());
    let own = || if spec.host_network == Some(true) { host.to_owned() } else { address() };
    let address = known.unwrap_or_else(own);
    let ready = has_begun && containers.iter().all(|container| container.ready);
    let mut status = PodStatus {
        phase: Some(phase.to_owned()),
        host_ip: Some(host.to_owned()),
        host_ips: Some(vec![HostIP { ip: host.to_owned() }]),
        pod_ip: Some(address.clone()),
        pod_ips: Some(vec![PodIP { ip: address }]),
        start_time: Some(Time(begin)),
        init_container_statuses: init_statuses(&spec, &before, (has_begun, is_over), begin),
        container_statuses: Some(containers),
        observed_generation: pod.metadata.generation,
        ..before
    };
    let conditions = [
        ("PodReadyToStartContainers", !is_over),
        ("Initialized", true),
        ("ContainersReady", ready),
        ("Ready", ready && gates_are_open(pod, &spec)),
        ("PodScheduled", true),
    ];
    for (type_, holds) in conditions {
        set(status.conditions.get_or_insert_default(), type_, holds, now);
    }
    Outlook { status, next: next.filter(|_| !is_over), error }
}

/// The status of a Pod whose containers were stopped.
pub(super) fn stopped(pod: &Pod, now: Timestamp) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    if pods::is_finished(pod) {
        return before;
    }
    let stop = |list: Option<Vec<ContainerStatus>>| {
        list.map(|list| list.iter().map(|status| container::stop(status, now)).collect::<Vec<_>>())
    };
    let containers = stop(before.container_statuses.clone());
    let failed = containers.iter().flatten().any(|status| container::exit_code(status) != Some(0));
    let mut status = PodStatus {
        phase: Some(if failed { "Failed" } else { "Succeeded" }.to_owned()),
        container_statuses: containers,
        init_container_statuses: stop(before.init_container_statuses.clone()),
        ..before
    };
    for type_ in ["ContainersReady", "Ready"] {
        set(status.conditions.get_or_insert_default(), type_, false, now);
    }
    status
}

/// When the containers of a leaving Pod have stopped: after the time they need, at most that which they are given.
pub(super) fn stops_at(pod: &Pod, now: Timestamp) -> Timestamp {
    let Some(end) = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0) else { return now };
    let grace = SignedDuration::from_secs(pod.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let needed = rule::stop(pod).unwrap_or_default();
    end.checked_sub(grace).and_then(|asked| asked.checked_add(needed.min(grace))).unwrap_or(now)
}

/// When a Pod has been active for as long as it may be.
fn deadline(pod: &Pod, begin: Timestamp) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    begin.checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn overdue(before: PodStatus) -> PodStatus {
    PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some("DeadlineExceeded".to_owned()),
        message: Some("Pod was active on the node longer than the specified deadline".to_owned()),
        ..before
    }
}

fn moments(pod: &Pod, spec: &PodSpec, begin: Timestamp, now: Timestamp) -> (Vec<Moment>, Option<RuleError>) {
    let restart = Restart::of(spec.restart_policy.as_deref());
    let mut error = None;
    let known = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let follow = |container: &Container| {
        let known = known.clone().find(|known| known.name == container.name);
        let rule = rule::of(pod, container).unwrap_or_else(|wrong| {
            error.get_or_insert(wrong);
            Rule { ready: Some(SignedDuration::ZERO), ..Rule::default() }
        });
        container::follow(container, known, (&rule, restart), begin, now)
    };
    (spec.containers.iter().map(follow).collect(), error)
}

fn phase(containers: &[ContainerStatus], restart: Restart) -> &'static str {
    let never_ran = |status: &ContainerStatus| {
        let state = |of: &Option<ContainerState>| {
            of.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
        };
        !state(&status.state) && !state(&status.last_state)
    };
    let codes: Vec<i32> = containers.iter().filter_map(container::exit_code).collect();
    if containers.iter().any(never_ran) {
        "Pending"
    } else if restart == Restart::Always || codes.len() < containers.len() || containers.is_empty() {
        "Running"
    } else if codes.iter().all(|code| *code == 0) {
        "Succeeded"
    } else {
        "Failed"
    }
}

/// Init containers have done their work when the others start; those that stay run as long as the Pod.
fn init_statuses(
    spec: &PodSpec,
    before: &PodStatus,
    (has_begun, is_over): (bool, bool),
    begin: Timestamp,
) -> Option<Vec<ContainerStatus>> {
    let status = |container: &Container| {
        let stays = container.restart_policy.as_deref() == Some("Always") && !is_over;
        let known = before.init_container_statuses.iter().flatten().find(|known| known.name == container.name);
        let image = container.image.clone().unwrap_or_default();
        let running = ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(Time(begin)) }),
            ..ContainerState::default()
        };
        ContainerStatus {
            name: container.name.clone(),
            image_id: format!("fake://{image}"),
            image,
            ready: has_begun || !stays,
            started: Some(stays),
            state: Some(if stays { running } else { container::terminated(0, begin, begin) }),
            ..known.cloned().unwrap_or_default()
        }
    };
    spec.init_containers.as_ref().map(|list| list.iter().map(status).collect())
}

fn gates_are_open(pod: &Pod, spec: &PodSpec) -> bool {
    let is_open = |type_: &str| pods::condition(pod, type_).is_some_and(|known| known.status == "True");
    spec.readiness_gates.iter().flatten().all(|gate| is_open(&gate.condition_type))
}

fn set(conditions: &mut Vec<PodCondition>, type_: &str, holds: bool, now: Timestamp) {
    let status = if holds { "True" } else { "False" };
    let known = conditions.iter_mut().find(|known| known.type_ == type_);
    match known {
        Some(known) if known.status == status => {}
        Some(known) => {
            known.status = status.to_owned();
            known.last_transition_time = Some(Time(now));
            known.reason = None;
            known.message = None;
        }
        None => conditions.push(PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const HOST: &str = "10.245.0.1";

    fn pod(annotations: Value, spec: Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "annotations": annotations}, "spec": spec})).unwrap()
    }

    fn at(pod: &Pod, seconds: i64) -> Outlook {
        outlook(pod, HOST, || "10.244.0.2".to_owned(), Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds))
    }

    #[test]
    fn pods_run_at_once_and_stay_as_they_are() {
        let mut pod = pod(json!({}), json!({"containers": [{"name": "c"}]}));
        let status = at(&pod, 0).status;
        assert_eq!((status.phase.as_deref(), status.pod_ip.as_deref()), (Some("Running"), Some("10.244.0.2")));
        pod.status = Some(status.clone());
        assert!(pods::is_ready(&pod));
        let later = outlook(&pod, HOST, || unreachable!("it has one"), Timestamp::now());
        assert_eq!((later.status, later.next), (status, None));
    }

    #[test]
    fn a_pod_that_is_active_for_too_long_fails() {
        let mut pod = pod(json!({}), json!({"containers": [], "activeDeadlineSeconds": 5}));
        pod.status = Some(at(&pod, 0).status);
        assert_eq!(at(&pod, 4).status.phase.as_deref(), Some("Running"));
        let status = at(&pod, 5).status;
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("DeadlineExceeded")));
    }

    #[test]
    fn a_closed_gate_keeps_a_pod_from_being_ready() {
        let mut pod =
            pod(json!({}), json!({"containers": [], "readinessGates": [{"conditionType": "example.com/gate"}]}));
        pod.status = Some(at(&pod, 0).status);
        assert!(!pods::is_ready(&pod));
    }

    #[test]
    fn a_pod_ends_as_its_containers_do() {
        let check = |code: &str, policy: &str, phase: &str| {
            let containers = json!([{"name": "a"}, {"name": "b"}]);
            let annotations = json!({"windlass.dev/fake-exit-code": "0", "windlass.dev/fake-exit-code.b": code});
            let pod = pod(annotations, json!({"restartPolicy": policy, "containers": containers}));
            assert_eq!(at(&pod, 0).status.phase.as_deref(), Some(phase), "{code} {policy}");
        };
        check("0", "Never", "Succeeded");
        check("1", "Never", "Failed");
        check("1", "OnFailure", "Running");
        check("0", "Always", "Running");
    }

    #[test]
    fn a_pod_stops_when_its_containers_have_and_not_later_than_it_may() {
        let check = |needed: &str, expect: i64| {
            let mut pod =
                pod(json!({"windlass.dev/fake-stop-seconds": needed}), json!({"containers": [{"name": "c"}]}));
            pod.status = Some(at(&pod, 0).status);
            pod.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(130)));
            pod.metadata.deletion_grace_period_seconds = Some(30);
            let end = stops_at(&pod, Timestamp::UNIX_EPOCH);
            assert_eq!(end.as_second(), expect);
            assert_eq!(stopped(&pod, end).phase.as_deref(), Some("Failed"));
        };
        check("0", 100);
        check("12", 112);
        check("3600", 130);
    }

    #[test]
    fn an_annotation_that_cannot_be_understood_is_told() {
        let pod = pod(json!({"windlass.dev/fake-run-seconds": "soon"}), json!({"containers": [{"name": "c"}]}));
        let outlook = at(&pod, 0);
        assert_eq!(outlook.status.phase.as_deref(), Some("Running"));
        assert!(outlook.error.unwrap().to_string().contains("soon"));
    }
}
