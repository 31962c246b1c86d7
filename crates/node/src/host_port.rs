//! Ports of the machine that Pods ask for: two Pods cannot have the same one.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};

use crate::pod::is_sidecar;

/// Any address of the machine.
const ANY: &str = "0.0.0.0";

/// The port that `pod` wants and one of `others` has, as a reason and a message for the status of a Pod that cannot run.
pub(crate) fn conflict(pod: &Pod, others: &[Arc<Pod>]) -> Option<(String, String)> {
    let wanted = ports(pod);
    let taken: Vec<HostPort> = others.iter().filter(|other| !is_over(other)).flat_map(|other| ports(other)).collect();
    let clash = wanted.iter().find(|port| taken.iter().any(|other| port.clashes(other)))?;
    let message = format!("Pod was rejected: Predicate NodePorts failed: port {} of the node is in use", clash.number);
    Some(("NodePorts".to_owned(), message))
}

/// The ports of the machine that lead to a Pod; none for one that shares the network of the machine.
pub(crate) fn served(pod: &Pod) -> Vec<HostPort> {
    let shares = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    if shares { Vec::new() } else { ports(pod).into_iter().collect() }
}

/// A port of the machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) address: String,
    pub(crate) number: i32,
    pub(crate) protocol: String,
    /// The port of the Pod that it leads to.
    pub(crate) target: i32,
}

impl HostPort {
    fn clashes(&self, other: &Self) -> bool {
        let same_address = self.address == other.address || self.address == ANY || other.address == ANY;
        same_address && self.number == other.number && self.protocol == other.protocol
    }
}

fn ports(pod: &Pod) -> BTreeSet<HostPort> {
    let beside = |spec: &PodSpec| -> Vec<Container> {
        spec.init_containers.iter().flatten().filter(|container| is_sidecar(container)).cloned().collect()
    };
    let containers = pod.spec.iter().flat_map(|spec| beside(spec).into_iter().chain(spec.containers.clone()));
    let ports = containers.flat_map(|container| container.ports.unwrap_or_default());
    let host_port = ports.filter_map(|port| {
        let text = |value: &Option<String>, default: &str| {
            value.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Some(HostPort {
            address: text(&port.host_ip, ANY),
            number: port.host_port.filter(|number| *number > 0)?,
            protocol: text(&port.protocol, "TCP"),
            target: port.container_port,
        })
    });
    host_port.collect()
}

fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(ports: Value, phase: &str) -> Pod {
        let containers = json!([{"name": "c", "ports": ports}]);
        serde_json::from_value(json!({"spec": {"containers": containers}, "status": {"phase": phase}})).unwrap()
    }

    #[test]
    fn a_port_of_the_machine_is_had_once() {
        let check = |wanted: Value, taken: Value, phase: &str, expect: bool| {
            let found = conflict(&pod(wanted.clone(), "Pending"), &[Arc::new(pod(taken.clone(), phase))]);
            assert_eq!(found.is_some(), expect, "{wanted} {taken} {phase}");
        };
        let port = || json!([{"containerPort": 80, "hostPort": 8080}]);
        check(port(), port(), "Running", true);
        check(port(), port(), "Failed", false);
        check(port(), json!([{"containerPort": 80, "hostPort": 8081}]), "Running", false);
        check(port(), json!([{"containerPort": 8080}]), "Running", false);
        check(port(), json!([{"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]), "Running", false);
        let at = |address: &str| json!([{"containerPort": 80, "hostPort": 8080, "hostIP": address}]);
        check(at("127.0.0.1"), at("127.0.0.2"), "Running", false);
        check(at("127.0.0.1"), port(), "Running", true);
    }
}
