//! Whether a node has room: requested resources and host ports.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use windlass_schema::pod_resources;

use crate::quantity::Amount;

/// Amounts by name of the resource.
type Resources = BTreeMap<String, Amount>;

/// What one Pod takes of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Footprint {
    requests: Resources,
    ports: Vec<HostPort>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HostPort {
    address: String,
    protocol: String,
    number: i32,
}

impl Footprint {
    /// What a Pod with this spec takes.
    pub(crate) fn of(spec: &PodSpec) -> Self {
        Self { requests: requests(spec), ports: host_ports(spec) }
    }

    /// What a Pod on a node takes: what it asks for, or was given before it asked for less.
    pub(crate) fn of_placed(pod: &Pod) -> Self {
        let mut footprint = pod.spec.as_ref().map(Self::of).unwrap_or_default();
        let status = pod.status.as_ref();
        let held = status.and_then(|status| status.resources.as_ref()?.requests.as_ref());
        let promised = status.and_then(|status| status.allocated_resources.as_ref());
        for (name, quantity) in [held, promised].into_iter().flatten().flatten() {
            let own = footprint.requests.entry(name.clone()).or_default();
            *own = (*own).max(Amount::from(quantity));
        }
        footprint
    }

    /// How much it asks for of a resource.
    pub(crate) fn requested(&self, resource: &str) -> Amount {
        self.requests.get(resource).copied().unwrap_or_default()
    }
}

/// What the Pods that are on a node take together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    requests: Resources,
    ports: Vec<HostPort>,
}

impl Load {
    /// Adds a Pod.
    pub(crate) fn add(&mut self, pod: &Footprint) {
        for (name, amount) in &pod.requests {
            let sum = self.requests.entry(name.clone()).or_default();
            *sum = *sum + *amount;
        }
        self.ports.extend(pod.ports.iter().cloned());
    }

    /// Takes a Pod away.
    pub(crate) fn remove(&mut self, pod: &Footprint) {
        for (name, amount) in &pod.requests {
            let sum = self.requests.entry(name.clone()).or_default();
            *sum = *sum - *amount;
        }
        for port in &pod.ports {
            if let Some(index) = self.ports.iter().position(|taken| taken == port) {
                self.ports.swap_remove(index);
            }
        }
    }

    /// Why the node has no room for the Pod, and whether an empty one had none either; empty if it has.
    pub(crate) fn refusals(&self, pod: &Footprint, node: &Node) -> Vec<(String, bool)> {
        let mut reasons = vec![];
        if pod.ports.iter().any(|port| self.ports.iter().any(|taken| clash(port, taken))) {
            reasons.push(("node(s) didn't have free ports for the requested pod ports".to_owned(), false));
        }
        let status = node.status.as_ref();
        let allocatable = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
        for (name, amount) in &pod.requests {
            let limit = allocatable.and_then(|allocatable| allocatable.get(name)).map(Amount::from);
            // A node that says nothing about pods has room for any number; other resources must be there to be used.
            let Some(limit) = limit.or((name != "pods").then_some(Amount::default())) else { continue };
            let used = self.requests.get(name).copied().unwrap_or_default();
            if *amount > Amount::default() && used + *amount > limit {
                let text = if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") };
                reasons.push((text, *amount > limit));
            }
        }
        reasons
    }

    /// How much of a resource is asked for.
    pub(crate) fn requested(&self, resource: &str) -> Amount {
        self.requests.get(resource).copied().unwrap_or_default()
    }

    /// How many Pods there are, to spread them.
    pub(crate) fn pods(&self) -> Amount {
        self.requested("pods")
    }
}

/// What the Pod asks for: what it says itself, else its containers together or one init container if that asks for more;
/// and one Pod.
fn requests(spec: &PodSpec) -> Resources {
    let pod = serde_json::json!({ "spec": spec });
    let asked = pod_resources::total(&pod, "requests").into_iter();
    let mut total: Resources = asked.map(|(name, amount)| (name, Amount::from_nanos(amount.nanos()))).collect();
    total.insert("pods".to_owned(), Amount::units(1));
    total
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let beside = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(beside);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let host = ports.filter_map(|port| {
        Some(HostPort {
            address: port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned()),
            protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            number: port.host_port.filter(|number| *number > 0)?,
        })
    });
    host.collect()
}

fn clash(a: &HostPort, b: &HostPort) -> bool {
    let everywhere = |port: &HostPort| port.address == "0.0.0.0";
    a.number == b.number && a.protocol == b.protocol && (a.address == b.address || everywhere(a) || everywhere(b))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pod_takes_what_it_has_until_it_has_less() {
        let check = |spec: Value, status: Value, expect: i64| {
            let pod: Pod = serde_json::from_value(json!({"spec": spec, "status": status})).unwrap();
            assert_eq!(Footprint::of_placed(&pod).requested("cpu"), Amount::units(expect), "{pod:?}");
        };
        let containers = || json!([{"name": "c", "resources": {"requests": {"cpu": "2"}}}]);
        check(json!({"containers": containers()}), json!({}), 2);
        check(json!({"containers": containers(), "resources": {"requests": {"cpu": "5"}}}), json!({}), 5);
        check(json!({"containers": containers()}), json!({"resources": {"requests": {"cpu": "3"}}}), 3);
        check(json!({"containers": containers()}), json!({"allocatedResources": {"cpu": "1"}}), 2);
    }
}
