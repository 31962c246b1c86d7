//! Whether a node has room: requested resources and host ports.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, PodSpec};

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

/// What the Pod asks for: its containers together, or one init container if that asks for more, and one Pod.
fn requests(spec: &PodSpec) -> Resources {
    let mut total = Resources::from([("pods".to_owned(), Amount::units(1))]);
    let of = |container: &Container| container.resources.as_ref().and_then(|r| r.requests.clone()).unwrap_or_default();
    let mut add = |name: String, amount: Amount| {
        let sum = total.entry(name).or_default();
        *sum = *sum + amount;
    };
    let (sidecars, init): (Vec<&Container>, Vec<&Container>) = spec
        .init_containers
        .iter()
        .flatten()
        .partition(|container| container.restart_policy.as_deref() == Some("Always"));
    for container in spec.containers.iter().chain(sidecars) {
        of(container).iter().for_each(|(name, quantity)| add(name.clone(), Amount::from(quantity)));
    }
    for container in init {
        for (name, quantity) in of(container) {
            let sum = total.entry(name).or_default();
            *sum = (*sum).max(Amount::from(&quantity));
        }
    }
    for (name, quantity) in spec.overhead.iter().flatten() {
        let sum = total.entry(name.clone()).or_default();
        *sum = *sum + Amount::from(quantity);
    }
    total
}

fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let ports = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
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
