//! The downward API: what a container may learn about its Pod.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use kube::ResourceExt;

use crate::quantity;

/// What the node knows about a Pod that its object may not say yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) pod: Ipv4Addr,
    pub(crate) host: Ipv4Addr,
}

/// The value of a field path; none if the path is not one of the downward API's.
pub(crate) fn field(pod: &Pod, addresses: Addresses, path: &str) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if let Some(key) = map_key(path, "metadata.labels") {
        return Some(pod.labels().get(key).cloned().unwrap_or_default());
    }
    if let Some(key) = map_key(path, "metadata.annotations") {
        return Some(pod.annotations().get(key).cloned().unwrap_or_default());
    }
    Some(match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "metadata.labels" => lines(pod.labels()),
        "metadata.annotations" => lines(pod.annotations()),
        "spec.nodeName" => spec.node_name.clone().unwrap_or_default(),
        "spec.serviceAccountName" => spec.service_account_name.clone().unwrap_or_default(),
        "status.podIP" | "status.podIPs" => addresses.pod.to_string(),
        "status.hostIP" | "status.hostIPs" => addresses.host.to_string(),
        _ => return None,
    })
}

/// A container's own limit or request; a limit that is not set is what the node has.
pub(crate) fn resource(containers: &[Container], default: &str, selector: &ResourceFieldSelector) -> Option<String> {
    let name = selector.container_name.as_deref().unwrap_or(default);
    let container = containers.iter().find(|container| container.name == name)?;
    let (kind, resource) = selector.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let values = match kind {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => return None,
    };
    let set = values.and_then(|values| values.get(resource)).map(|quantity| quantity.0.clone());
    let amount = match (set, kind) {
        (Some(amount), _) => amount,
        (None, "limits") => of_machine(resource)?,
        (None, _) => "0".to_owned(),
    };
    let divisor = selector.divisor.as_ref().map_or("", |divisor| divisor.0.as_str());
    quantity::divided(&amount, divisor).map(|value| value.to_string())
}

fn of_machine(resource: &str) -> Option<String> {
    match resource {
        "cpu" => Some(std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string()),
        "memory" => {
            let system = rustix::system::sysinfo();
            Some((system.totalram as u64 * u64::from(system.mem_unit)).to_string())
        }
        "ephemeral-storage" => Some("0".to_owned()),
        _ => None,
    }
}

fn map_key<'a>(path: &'a str, map: &str) -> Option<&'a str> {
    path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']")
}

fn lines(map: &std::collections::BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}={value:?}")).collect::<Vec<_>>().join("\n")
}
