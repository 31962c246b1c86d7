//! From a Service and its Pods to the addresses and ports that serve it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::pods;

/// One port of the Service, resolved against a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) number: i32,
    pub(crate) app_protocol: Option<String>,
}

/// What can be said about the willingness of a Pod to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub(crate) serving: bool,
    pub(crate) terminating: bool,
}

impl Readiness {
    /// Whether traffic may go there: `publish_all` is for Services that take every address.
    fn admits_traffic(self, publish_all: bool) -> bool {
        publish_all || (self.serving && !self.terminating)
    }
}

/// One Pod behind a Service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backend<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) address: String,
    pub(crate) hostname: Option<String>,
    pub(crate) ports: Vec<Port>,
    pub(crate) readiness: Readiness,
    pub(crate) ready: bool,
}

impl Backend<'_> {
    /// The name of the node that the Pod is on.
    pub(crate) fn node_name(&self) -> Option<String> {
        self.pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
    }

    /// The Pod, as others refer to it.
    pub(crate) fn reference(&self) -> ObjectReference {
        let metadata = &self.pod.metadata;
        ObjectReference {
            kind: Some("Pod".to_owned()),
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// Whether the Service is one that this controller keeps endpoints for.
pub(crate) fn is_managed(service: &Service) -> bool {
    let Some(spec) = &service.spec else { return false };
    spec.type_.as_deref() != Some("ExternalName") && spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
}

/// Whether the Service selects the Pod.
pub(crate) fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let labels = pod.metadata.labels.as_ref();
    selector.is_some_and(|selector| {
        selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    })
}

/// The Pods that serve, or are about to, sorted by address.
pub(crate) fn backends<'a>(service: &Service, pods: &[&'a Pod]) -> Vec<Backend<'a>> {
    let mut backends: Vec<Backend<'a>> = pods.iter().filter_map(|pod| backend(service, pod)).collect();
    backends.sort_by(|a, b| a.address.cmp(&b.address));
    backends
}

fn backend<'a>(service: &Service, pod: &'a Pod) -> Option<Backend<'a>> {
    if !selects(service, pod) || pods::is_finished(pod) {
        return None;
    }
    let spec = service.spec.as_ref()?;
    let address = pod.status.as_ref()?.pod_ip.clone().filter(|address| !address.is_empty())?;
    let publish_all = spec.publish_not_ready_addresses.unwrap_or(false);
    let readiness = Readiness { serving: pods::is_ready(pod), terminating: pods::is_terminating(pod) };
    let ports = spec.ports.iter().flatten().filter_map(|port| resolve(port, pod)).collect();
    Some(Backend {
        pod,
        address,
        hostname: hostname(service, pod),
        ports,
        readiness,
        ready: readiness.admits_traffic(publish_all),
    })
}

/// The name of the Pod under the Service, for Pods with `hostname` and this Service as `subdomain`.
fn hostname(service: &Service, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.clone().filter(|hostname| !hostname.is_empty())?;
    let same_namespace = pod.metadata.namespace == service.metadata.namespace;
    (spec.subdomain == service.metadata.name && same_namespace).then_some(hostname)
}

/// The number of the port in that Pod; a named port that the Pod does not have is left out.
fn resolve(port: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(0)) => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => named(name, &protocol, pod)?,
    };
    let name = port.name.clone().unwrap_or_default();
    Some(Port { name, protocol, number, app_protocol: port.app_protocol.clone() })
}

fn named(name: &str, protocol: &str, pod: &Pod) -> Option<i32> {
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let mut matching = ports
        .filter(|port| port.name.as_deref() == Some(name) && port.protocol.as_deref().unwrap_or("TCP") == protocol);
    matching.next().map(|port| port.container_port)
}

/// Groups backends by the ports that they resolve to: Pods of two versions may serve a named port differently.
pub(crate) fn by_ports<'a, 'b>(backends: &'b [Backend<'a>]) -> BTreeMap<Vec<Port>, Vec<&'b Backend<'a>>> {
    let mut groups: BTreeMap<Vec<Port>, Vec<&Backend<'a>>> = BTreeMap::new();
    for backend in backends {
        groups.entry(backend.ports.clone()).or_default().push(backend);
    }
    groups
}
