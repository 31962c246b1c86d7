//! Services as quotas count them.

use serde_json::Value;

use super::Amounts;
use crate::quantity::Quantity;

pub(super) const NAMES: [&str; 4] = ["count/services", "services", "services.nodeports", "services.loadbalancers"];

pub(super) fn usage(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (node_ports, balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => {
            (ports.iter().filter(|port| port["nodePort"].as_u64().is_some_and(|number| number > 0)).count(), 1)
        }
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    let amounts = [1, 1, node_ports, balancers];
    NAMES.into_iter().zip(amounts).map(|(name, units)| (name.to_owned(), Quantity::units(units))).collect()
}
