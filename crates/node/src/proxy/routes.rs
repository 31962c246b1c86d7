//! Which address leads where, as it follows from Services and their endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use kube::ResourceExt;

pub(crate) const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// Namespace and name.
pub(crate) type Key = (String, String);

/// How a port is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// The protocol by its name in the API; none for one that is not carried.
    pub(super) fn of(name: Option<&str>) -> Option<Self> {
        match name.unwrap_or("TCP") {
            "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            _ => None,
        }
    }
}

/// Where something is served: the same address may be two things for two protocols.
pub(crate) type Front = (Protocol, SocketAddrV4);

/// Where connections to one address of a Service go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) service: Key,
    pub(crate) backends: Vec<SocketAddr>,
    /// Whether a client keeps its backend.
    pub(crate) sticky: bool,
}

/// Services and endpoints as last seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct World {
    pub(crate) services: BTreeMap<Key, Service>,
    pub(crate) slices: BTreeMap<Key, EndpointSlice>,
}

/// The key of an object.
pub(crate) fn key(object: &impl kube::Resource) -> Key {
    let meta = object.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

impl World {
    /// The addresses to listen on and where each leads. One without a ready endpoint is absent, so that it refuses
    /// connections. `node` is the address of node ports.
    pub(crate) fn routes(&self, node: Ipv4Addr) -> BTreeMap<Front, Route> {
        let mut routes = BTreeMap::new();
        for (key, service) in &self.services {
            let Some(spec) = &service.spec else { continue };
            let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
            let addresses: Vec<Ipv4Addr> = spec.cluster_ip.iter().filter_map(|ip| ip.parse().ok()).collect();
            for port in spec.ports.iter().flatten() {
                let Some(protocol) = Protocol::of(port.protocol.as_deref()) else { continue };
                let backends = self.backends(key, port.name.as_deref().unwrap_or_default(), protocol);
                if backends.is_empty() {
                    continue;
                }
                let route = Route { service: key.clone(), backends, sticky };
                let number = |port: i32| u16::try_from(port).ok();
                let own = addresses.iter().filter_map(|ip| Some(SocketAddrV4::new(*ip, number(port.port)?)));
                let shared =
                    port.node_port.and_then(number).filter(|port| *port > 0).map(|port| SocketAddrV4::new(node, port));
                routes.extend(own.chain(shared).map(|address| ((protocol, address), route.clone())));
            }
        }
        routes
    }

    /// Endpoints of a Service's port: the ready ones; while there is none, those that end but still serve.
    fn backends(&self, service: &Key, port: &str, protocol: Protocol) -> Vec<SocketAddr> {
        let (mut ready, mut serving) = (BTreeSet::new(), BTreeSet::new());
        for slice in self.slices_of(service) {
            let is_meant = |p: &&EndpointPort| {
                p.name.as_deref().unwrap_or_default() == port && Protocol::of(p.protocol.as_deref()) == Some(protocol)
            };
            let numbers = slice.ports.iter().flatten().filter(is_meant);
            let numbers: Vec<u16> = numbers.filter_map(|p| u16::try_from(p.port?).ok()).collect();
            for endpoint in slice.endpoints.iter().flatten() {
                let backends = match standing(endpoint) {
                    Standing::Ready => &mut ready,
                    Standing::Serving => &mut serving,
                    Standing::Out => continue,
                };
                let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
                let sockets = addresses.flat_map(|ip| numbers.iter().map(move |number| SocketAddr::new(ip, *number)));
                backends.extend(sockets);
            }
        }
        if ready.is_empty() { serving } else { ready }.into_iter().collect()
    }

    /// The slices that belong to a Service.
    pub(crate) fn slices_of<'a>(&'a self, (namespace, name): &'a Key) -> impl Iterator<Item = &'a EndpointSlice> {
        let own = move |slice: &&EndpointSlice| {
            slice.namespace().as_ref() == Some(namespace) && slice.labels().get(SERVICE_NAME_LABEL) == Some(name)
        };
        self.slices.values().filter(own)
    }
}

/// What an endpoint is good for.
enum Standing {
    Ready,
    /// It ends, and answers until then.
    Serving,
    Out,
}

fn standing(endpoint: &Endpoint) -> Standing {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    match (conditions.ready, conditions.serving, conditions.terminating) {
        (None | Some(true), _, _) => Standing::Ready,
        (_, Some(true), Some(true)) => Standing::Serving,
        _ => Standing::Out,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    pub(crate) fn world(services: &[Value], slices: &[Value]) -> World {
        let services = services.iter().map(|value| serde_json::from_value::<Service>(value.clone()).unwrap());
        let slices = slices.iter().map(|value| serde_json::from_value::<EndpointSlice>(value.clone()).unwrap());
        World { services: services.map(|s| (key(&s), s)).collect(), slices: slices.map(|s| (key(&s), s)).collect() }
    }

    pub(crate) fn service() -> Value {
        json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {"clusterIP": "127.64.0.9",
            "ports": [{"name": "http", "port": 8080, "nodePort": 30001}]}})
    }

    pub(crate) fn slice(ready: bool) -> Value {
        json!({"metadata": {"name": "web-1", "namespace": "n", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": 80}],
            "endpoints": [{"addresses": ["127.64.128.1"], "hostname": "web-0", "conditions": {"ready": true}},
                {"addresses": ["127.64.128.2"], "conditions": {"ready": ready}}]})
    }

    fn check(ready: bool, expect: &[&str]) {
        let routes = world(&[service()], &[slice(ready)]).routes(Ipv4Addr::new(127, 64, 0, 1));
        let listening: Vec<String> = routes.keys().map(|(_, address)| address.to_string()).collect();
        assert_eq!(listening, ["127.64.0.1:30001", "127.64.0.9:8080"]);
        let backends: Vec<String> = routes.values().last().unwrap().backends.iter().map(ToString::to_string).collect();
        assert_eq!(backends, expect);
    }

    #[test]
    fn only_ready_endpoints_are_reached() {
        check(true, &["127.64.128.1:80", "127.64.128.2:80"]);
        check(false, &["127.64.128.1:80"]);
    }

    #[test]
    fn a_port_of_two_protocols_leads_to_the_endpoints_of_each() {
        let (mut service, mut slice) = (service(), slice(true));
        service["spec"]["ports"] = json!([{"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"}, {"name": "none", "port": 53, "protocol": "SCTP"}]);
        slice["ports"] = json!([{"name": "dns", "port": 5353, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 5354, "protocol": "TCP"}, {"name": "none", "port": 1, "protocol": "SCTP"}]);
        let routes = world(&[service], &[slice]).routes(Ipv4Addr::LOCALHOST);
        let ports: Vec<(Protocol, u16)> =
            routes.iter().map(|((protocol, _), route)| (*protocol, route.backends[0].port())).collect();
        assert_eq!(ports, [(Protocol::Tcp, 5354), (Protocol::Udp, 5353)]);
    }

    #[test]
    fn the_last_endpoints_serve_while_they_end() {
        let mut ending = slice(false);
        ending["endpoints"][0]["conditions"] = json!({"ready": false, "serving": true, "terminating": true});
        let routes = world(&[service()], &[ending]).routes(Ipv4Addr::LOCALHOST);
        let backends: Vec<String> = routes.values().last().unwrap().backends.iter().map(ToString::to_string).collect();
        assert_eq!(backends, ["127.64.128.1:80"]);
    }

    #[test]
    fn a_service_without_endpoints_refuses_connections() {
        assert!(world(&[service()], &[]).routes(Ipv4Addr::LOCALHOST).is_empty());
    }
}
