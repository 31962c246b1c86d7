//! The Node object and its lease: how the cluster knows that this node is there and alive.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus, NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use tokio_util::sync::CancellationToken;
use windlass_schema::kubelet::architecture;

use crate::config::NodeConfig;
use crate::context::Context;
use crate::room::Demand;
use crate::sandbox::Capabilities;

const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const RENEW_EVERY: Duration = Duration::from_secs(10);
const MANAGER: &str = "windlass-node";
/// Says how containers are held to their limits.
const LIMITS_ANNOTATION: &str = "windlass.dev/limits";
/// The Kubernetes version whose behaviour this node follows.
const KUBELET_VERSION: &str = "v1.36.3";

/// Creates the Node object, or brings it up to date.
pub(crate) async fn register(context: &Context) -> kube::Result<Node> {
    let (config, capabilities) = (&context.config, context.capabilities);
    let nodes: Api<Node> = Api::all(config.client.clone());
    let wanted = node(config, context.limits());
    let existing = match nodes.create(&PostParams::default(), &wanted).await {
        Ok(created) => created,
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            let meta = serde_json::json!({
                "metadata": { "labels": wanted.labels(), "annotations": wanted.annotations() }
            });
            nodes.patch(&config.name, &PatchParams::default(), &Patch::Merge(meta)).await?
        }
        Err(error) => return Err(error),
    };
    let conditions = existing.status.and_then(|status| status.conditions).unwrap_or_default();
    let status = status(config, capabilities, &conditions);
    let patch = serde_json::json!({ "status": status });
    nodes.patch_status(&config.name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// Renews the lease until told to stop. A node that was taken for dead, as after the machine slept, says that it is not.
pub(crate) async fn keep_lease(context: &Context, node: Node, stop: CancellationToken) {
    let config = &context.config;
    let leases: Api<Lease> = Api::namespaced(config.client.clone(), LEASE_NAMESPACE);
    let nodes: Api<Node> = Api::all(config.client.clone());
    let mut ticks = tokio::time::interval(RENEW_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = renew(&leases, &node).await {
            tracing::warn!(%error, "the lease of this node was not renewed");
        }
        let is_given_up =
            nodes.get_opt(&config.name).await.is_ok_and(|node| node.is_some_and(|node| is_unknown(&node)));
        if is_given_up && let Err(error) = register(context).await {
            tracing::warn!(%error, "the status of this node was not written");
        }
    }
}

fn is_unknown(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
}

async fn renew(leases: &Api<Lease>, node: &Node) -> kube::Result<()> {
    let name = node.name_any();
    let now = MicroTime(Timestamp::now());
    let patch = serde_json::json!({ "spec": { "renewTime": now } });
    match leases.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        other => return other.map(drop),
    }
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: kube::Resource::owner_ref(node, &()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    };
    leases.create(&PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }, &lease).await?;
    Ok(())
}

fn node(config: &NodeConfig, limits: String) -> Node {
    let arch = architecture();
    let labels = [
        ("kubernetes.io/hostname", config.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", arch),
    ];
    Node {
        metadata: ObjectMeta {
            name: Some(config.name.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            annotations: Some([(LIMITS_ANNOTATION.to_owned(), limits)].into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            pod_cidr: Some(config.pod_range.to_string()),
            pod_cidrs: Some(vec![config.pod_range.to_string()]),
            ..NodeSpec::default()
        }),
        ..Node::default()
    }
}

fn status(config: &NodeConfig, capabilities: Capabilities, before: &[NodeCondition]) -> NodeStatus {
    let resources = resources(config.pods_max);
    NodeStatus {
        addresses: Some(vec![address("InternalIP", &config.address.to_string()), address("Hostname", &config.name)]),
        capacity: Some(resources.clone()),
        allocatable: Some(resources),
        conditions: Some(conditions(capabilities, before)),
        daemon_endpoints: Some(NodeDaemonEndpoints {
            kubelet_endpoint: config.port.map(|port| DaemonEndpoint { port: port.into() }),
        }),
        node_info: Some(system_info()),
        ..NodeStatus::default()
    }
}

fn address(kind: &str, address: &str) -> NodeAddress {
    NodeAddress { type_: kind.to_owned(), address: address.to_owned() }
}

/// A transition time changes only with the condition's status.
fn conditions(capabilities: Capabilities, before: &[NodeCondition]) -> Vec<NodeCondition> {
    let now = Time(Timestamp::now());
    let missing = capabilities.missing().join("; ");
    let ready = if capabilities.namespaces { "True" } else { "False" };
    let ready_message = if missing.is_empty() { "the node runs Pods as sandboxed processes" } else { &missing };
    let table = [
        ("MemoryPressure", "False", "NodeHasSufficientMemory", "memory is not measured"),
        ("DiskPressure", "False", "NodeHasNoDiskPressure", "disk space is not measured"),
        ("PIDPressure", "False", "NodeHasSufficientPID", "process ids are not measured"),
        ("Ready", ready, if capabilities.namespaces { "NodeReady" } else { "NodeNotReady" }, ready_message),
    ];
    let condition = |(type_, status, reason, message): (&str, &str, &str, &str)| {
        let same = before.iter().find(|old| old.type_ == type_ && old.status == status);
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: same.and_then(|old| old.last_transition_time.clone()).or(Some(now.clone())),
        }
    };
    table.into_iter().map(condition).collect()
}

/// What the machine has for Pods.
pub(crate) fn capacity() -> Demand {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let system = rustix::system::sysinfo();
    Demand { cpu: cpus as u64 * 1000, memory: system.totalram as u64 * u64::from(system.mem_unit) }
}

fn resources(pods_max: u32) -> BTreeMap<String, Quantity> {
    let capacity = capacity();
    let entries = [
        ("cpu", (capacity.cpu / 1000).to_string()),
        ("memory", format!("{}Ki", capacity.memory / 1024)),
        ("pods", pods_max.to_string()),
        ("ephemeral-storage", "100Gi".to_owned()),
    ];
    entries.map(|(name, amount)| (name.to_owned(), Quantity(amount))).into()
}

fn system_info() -> NodeSystemInfo {
    let uname = rustix::system::uname();
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let pretty = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("Linux");
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        container_runtime_version: format!("windlass://{}", env!("CARGO_PKG_VERSION")),
        kernel_version: uname.release().to_string_lossy().into_owned(),
        kubelet_version: KUBELET_VERSION.to_owned(),
        machine_id: read("/etc/machine-id"),
        operating_system: "linux".to_owned(),
        os_image: pretty.trim_matches('"').to_owned(),
        ..NodeSystemInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_transition_time_until_it_changes() {
        let all = Capabilities { namespaces: true, writable_root: true, confinement: true, all_users: true };
        let long_ago = Time(Timestamp::UNIX_EPOCH);
        let mut before = conditions(all, &[]);
        before.iter_mut().for_each(|condition| condition.last_transition_time = Some(long_ago.clone()));
        let ready = |conditions: Vec<NodeCondition>| conditions.into_iter().find(|c| c.type_ == "Ready").unwrap();
        assert_eq!(ready(conditions(all, &before)).last_transition_time, Some(long_ago.clone()));
        let none = Capabilities { namespaces: false, ..all };
        let changed = ready(conditions(none, &before));
        assert_eq!(changed.status, "False");
        assert_ne!(changed.last_transition_time, Some(long_ago));
    }
}
