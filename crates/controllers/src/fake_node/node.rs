//! What a node that runs nothing says about itself.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use windlass_schema::kubelet::architecture;

use super::fleet;

/// What a node has unless its capacity says otherwise: room for everything.
const CAPACITY: [(&str, &str); 4] =
    [("cpu", "1000"), ("memory", "1Ti"), ("ephemeral-storage", "1Ti"), ("pods", "10000")];

/// The node, before it has a status.
pub(super) fn node(name: &str) -> Node {
    let labels =
        [("kubernetes.io/hostname", name), ("kubernetes.io/os", "linux"), ("kubernetes.io/arch", architecture())];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    Node { metadata, ..Node::default() }
}

/// A healthy node. What others wrote into its capacity stays, and all of it can be allocated.
pub(super) fn status(name: &str, before: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
    let mut status = before.cloned().unwrap_or_default();
    let mut capacity: BTreeMap<String, Quantity> = status.capacity.take().unwrap_or_default();
    for (resource, amount) in CAPACITY {
        capacity.entry(resource.to_owned()).or_insert_with(|| Quantity(amount.to_owned()));
    }
    status.allocatable = Some(capacity.clone());
    status.capacity = Some(capacity);
    let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
    status.addresses = Some(vec![address("InternalIP", fleet::address(name)), address("Hostname", name.to_owned())]);
    status.daemon_endpoints.get_or_insert_with(NodeDaemonEndpoints::default);
    status.node_info = Some(NodeSystemInfo {
        architecture: architecture().to_owned(),
        operating_system: "linux".to_owned(),
        kubelet_version: "v1.36.3".to_owned(),
        container_runtime_version: "fake://1".to_owned(),
        ..NodeSystemInfo::default()
    });
    let conditions = status.conditions.get_or_insert_default();
    for (type_, value, reason) in [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "FakeNodeReady"),
    ] {
        if !conditions.iter().any(|known| known.type_ == type_ && known.status == value) {
            conditions.retain(|known| known.type_ != type_);
            conditions.push(condition(type_, value, reason, now));
        }
    }
    status
}

fn condition(type_: &str, status: &str, reason: &str, now: Timestamp) -> NodeCondition {
    NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some("this node runs no processes".to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn capacity_that_others_wrote_stays_and_can_be_allocated() {
        let before = serde_json::from_value(json!({"capacity": {"cpu": "4", "example.com/gpu": "2"}})).unwrap();
        let after = status("fake-node-0", Some(&before), Timestamp::UNIX_EPOCH);
        let amounts = |name: &str| after.allocatable.as_ref().unwrap().get(name).map(|amount| amount.0.as_str());
        assert_eq!(
            ["cpu", "example.com/gpu", "pods", "none"].map(amounts),
            [Some("4"), Some("2"), Some("10000"), None]
        );
        assert_eq!(status("fake-node-0", Some(&after), Timestamp::now()), after, "nothing to write again");
    }
}
