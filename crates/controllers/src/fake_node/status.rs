//! What a node that runs nothing says about itself and its Pods.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStatus, HostIP, Node,
    NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo, Pod, PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::{owners, pods};

/// The longest sleep, for those who say "forever".
const SLEEP_SECONDS_MAX: i64 = 365 * 24 * 3600;

/// The address of the node itself.
const NODE_ADDRESS: &str = "10.244.0.1";

/// The node, before it has a status.
pub(crate) fn node(name: &str) -> Node {
    let labels =
        [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", architecture())];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    Node { metadata, ..Node::default() }
}

/// A healthy node with room for everything.
pub(crate) fn node_status(before: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
    let resources = [("cpu", "1000"), ("memory", "1Ti"), ("ephemeral-storage", "1Ti"), ("pods", "10000")];
    let resources = resources.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
    let mut status = before.cloned().unwrap_or_default();
    status.capacity = Some(resources.clone().into());
    status.allocatable = Some(resources.into());
    status.addresses = Some(vec![NodeAddress { type_: "InternalIP".to_owned(), address: NODE_ADDRESS.to_owned() }]);
    status.daemon_endpoints.get_or_insert_with(NodeDaemonEndpoints::default);
    status.node_info = Some(NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: "linux".to_owned(),
        kubelet_version: "v1.36.3".to_owned(),
        container_runtime_version: "fake://1".to_owned(),
        ..NodeSystemInfo::default()
    });
    let conditions = status.conditions.get_or_insert_default();
    if !conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
        conditions.retain(|condition| condition.type_ != "Ready");
        conditions.push(NodeCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            reason: Some("FakeNodeReady".to_owned()),
            message: Some("this node runs no processes".to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        });
    }
    status
}

/// When a Pod of a Job has done its work: at once, or after the time that its command sleeps.
pub(crate) fn end(pod: &Pod, now: Timestamp) -> Option<Timestamp> {
    owners::controller(&pod.metadata).filter(|owner| owner.kind == "Job")?;
    let started = started(pod, now);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let slept = containers.map(sleep).max().unwrap_or_default();
    started.checked_add(slept).ok()
}

/// When a Pod has been active for as long as it may be.
pub(crate) fn deadline(pod: &Pod, now: Timestamp) -> Option<Timestamp> {
    let seconds = pod.spec.as_ref()?.active_deadline_seconds?;
    started(pod, now).checked_add(SignedDuration::from_secs(seconds)).ok()
}

fn started(pod: &Pod, now: Timestamp) -> Timestamp {
    pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |started| started.0)
}

/// How long the command of a container sleeps, if that is what it does.
fn sleep(container: &Container) -> SignedDuration {
    let words = container.command.iter().chain(&container.args).flatten();
    let mut words = words.flat_map(|word| word.split([' ', ';', '&'])).skip_while(|word| *word != "sleep").skip(1);
    let Some(time) = words.next() else { return SignedDuration::ZERO };
    let seconds = time.strip_suffix('s').unwrap_or(time).parse().ok().filter(|seconds: &i64| *seconds >= 0);
    SignedDuration::from_secs(seconds.unwrap_or(SLEEP_SECONDS_MAX).min(SLEEP_SECONDS_MAX))
}

/// The status of a Pod: running and ready; a Pod of a Job ends.
pub(crate) fn pod_status(pod: &Pod, address: impl FnOnce() -> String, now: Timestamp) -> PodStatus {
    let before = pod.status.clone().unwrap_or_default();
    if pods::is_finished(pod) {
        return before;
    }
    if deadline(pod, now).is_some_and(|deadline| deadline <= now) {
        return PodStatus {
            phase: Some("Failed".to_owned()),
            reason: Some("DeadlineExceeded".to_owned()),
            message: Some("Pod was active on the node longer than the specified deadline".to_owned()),
            ..before
        };
    }
    let done = end(pod, now).is_some_and(|end| end <= now);
    let address = before.pod_ip.clone().filter(|address| !address.is_empty()).unwrap_or_else(address);
    let spec = pod.spec.as_ref();
    let started = before.start_time.clone().unwrap_or(Time(now));
    let state = |container: &Container| container_status(container, &before, done, &started);
    let containers = spec.map(|spec| spec.containers.iter().map(state).collect());
    let gates_open = spec.and_then(|spec| spec.readiness_gates.as_ref()).is_none_or(|gates| {
        gates.iter().all(|gate| pods::condition(pod, &gate.condition_type).is_some_and(|known| known.status == "True"))
    });
    let mut status = PodStatus {
        phase: Some(if done { "Succeeded" } else { "Running" }.to_owned()),
        host_ip: Some(NODE_ADDRESS.to_owned()),
        host_ips: Some(vec![HostIP { ip: NODE_ADDRESS.to_owned() }]),
        pod_ip: Some(address.clone()),
        pod_ips: Some(vec![PodIP { ip: address }]),
        start_time: Some(started),
        container_statuses: containers,
        observed_generation: pod.metadata.generation,
        ..before
    };
    let conditions = [
        ("PodReadyToStartContainers", !done),
        ("Initialized", true),
        ("ContainersReady", !done),
        ("Ready", !done && gates_open),
        ("PodScheduled", true),
    ];
    for (type_, holds) in conditions {
        set(status.conditions.get_or_insert_default(), type_, holds, now);
    }
    status
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

fn container_status(container: &Container, before: &PodStatus, done: bool, started: &Time) -> ContainerStatus {
    let known = before.container_statuses.iter().flatten().find(|known| known.name == container.name);
    let running = || ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(started.clone()) }),
        ..ContainerState::default()
    };
    let terminated = || ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: 0,
            reason: Some("Completed".to_owned()),
            started_at: Some(started.clone()),
            finished_at: Some(started.clone()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
    let image = container.image.clone().unwrap_or_default();
    ContainerStatus {
        name: container.name.clone(),
        image_id: format!("fake://{image}"),
        image,
        ready: !done,
        started: Some(!done),
        state: Some(if done { terminated() } else { running() }),
        ..known.cloned().unwrap_or_default()
    }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_run_at_once_and_stay_as_they_are() {
        let mut pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}))
                .unwrap();
        let status = pod_status(&pod, || "10.244.0.2".to_owned(), Timestamp::UNIX_EPOCH);
        assert_eq!((status.phase.as_deref(), status.pod_ip.as_deref()), (Some("Running"), Some("10.244.0.2")));
        pod.status = Some(status.clone());
        assert!(pods::is_ready(&pod));
        assert_eq!(pod_status(&pod, || unreachable!("it has one"), Timestamp::now()), status);
    }

    #[test]
    fn a_pod_that_is_active_for_too_long_fails() {
        let mut pod: Pod =
            serde_json::from_value(json!({"spec": {"containers": [], "activeDeadlineSeconds": 5}})).unwrap();
        let begin = Timestamp::UNIX_EPOCH;
        pod.status = Some(pod_status(&pod, String::new, begin));
        let at = |seconds| pod_status(&pod, String::new, begin + SignedDuration::from_secs(seconds));
        assert_eq!(at(4).phase.as_deref(), Some("Running"));
        let status = at(5);
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("DeadlineExceeded")));
    }

    #[test]
    fn a_closed_gate_keeps_a_pod_from_being_ready() {
        let mut pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"},
            "spec": {"containers": [], "readinessGates": [{"conditionType": "example.com/gate"}]}}))
        .unwrap();
        pod.status = Some(pod_status(&pod, String::new, Timestamp::now()));
        assert!(!pods::is_ready(&pod));
    }

    #[test]
    fn a_pod_of_a_job_ends_when_its_sleep_is_over() {
        let pod = |command: &[&str], owner: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "p", "ownerReferences": [
                    {"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": true}]},
                "spec": {"containers": [{"name": "c", "command": command}]},
            }))
            .unwrap()
        };
        let seconds = |command: &[&str]| {
            let end = end(&pod(command, "Job"), Timestamp::UNIX_EPOCH).unwrap();
            end.duration_since(Timestamp::UNIX_EPOCH).as_secs()
        };
        assert_eq!(seconds(&["/bin/true"]), 0);
        assert_eq!(seconds(&["sleep", "300"]), 300);
        assert_eq!(seconds(&["sh", "-c", "sleep 5s; exit 0"]), 5);
        assert_eq!(seconds(&["sleep", "infinity"]), SLEEP_SECONDS_MAX);
        assert_eq!(end(&pod(&["sleep", "300"], "ReplicaSet"), Timestamp::UNIX_EPOCH), None);
        let status = |now| pod_status(&pod(&["sleep", "300"], "Job"), String::new, now).phase;
        assert_eq!(status(Timestamp::UNIX_EPOCH).as_deref(), Some("Running"));
    }
}
