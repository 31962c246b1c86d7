//! What the names of the cluster's domain mean, as it follows from Services and their endpoints.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use crate::proxy::{Key, World};

/// The version of Kubernetes' rules for names that this follows.
const RULES: &str = "1.1.0";
const REVERSE: &str = ".in-addr.arpa";

/// What is known of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// It exists and has these records.
    Records(Vec<Data>),
    /// It stands for another name.
    Alias(String),
    /// It is in the domain and does not exist.
    Nothing,
    /// Another server knows.
    Elsewhere,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    Address(Ipv4Addr),
    /// A port of `target`, and where that is.
    Server {
        port: u16,
        target: String,
        address: Ipv4Addr,
    },
    Pointer(String),
    Text(&'static str),
}

/// The domain of a cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zone<'w> {
    pub(super) domain: &'w str,
    pub(super) world: &'w World,
}

impl Zone<'_> {
    /// Looks a name up; case and the dot at its end do not matter.
    pub(super) fn find(&self, name: &str) -> Found {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if let Some(reversed) = name.strip_suffix(REVERSE) {
            return self.reverse(reversed);
        }
        let Some(rest) = name.strip_suffix(self.domain) else { return Found::Elsewhere };
        if rest.is_empty() {
            return Found::Records(Vec::new());
        }
        let Some(rest) = rest.strip_suffix('.') else { return Found::Elsewhere };
        let labels: Vec<&str> = rest.rsplit('.').collect();
        match labels.as_slice() {
            ["dns-version"] => Found::Records(vec![Data::Text(RULES)]),
            ["svc" | "pod"] => Found::Records(Vec::new()),
            ["svc", namespace] => self.namespace(namespace),
            ["svc", namespace, service, below @ ..] => self.service(namespace, service, below),
            ["pod", _, address] => {
                undashed(address).map_or(Found::Nothing, |ip| Found::Records(vec![Data::Address(ip)]))
            }
            _ => Found::Nothing,
        }
    }

    fn namespace(&self, namespace: &str) -> Found {
        let is_known = self.world.services.keys().any(|(known, _)| known == namespace);
        if is_known { Found::Records(Vec::new()) } else { Found::Nothing }
    }

    /// A Service, or with labels below it one of its endpoints or ports.
    fn service(&self, namespace: &str, name: &str, below: &[&str]) -> Found {
        let key = (namespace.to_owned(), name.to_owned());
        let Some(service) = self.world.services.get(&key) else { return Found::Nothing };
        let alias = service.spec.as_ref().and_then(|spec| spec.external_name.clone()).filter(|_| is_external(service));
        match (below, alias) {
            ([], Some(alias)) => Found::Alias(alias),
            ([], None) => Found::Records(self.addresses(&key, service).into_iter().map(Data::Address).collect()),
            ([host], _) => {
                let named = self.endpoints(&key, service).filter(|endpoint| endpoint.label() == *host);
                some(named.map(|endpoint| Data::Address(endpoint.address)).collect())
            }
            ([protocol, port], _) => {
                let unmarked = protocol.strip_prefix('_').zip(port.strip_prefix('_'));
                unmarked.map_or(Found::Nothing, |(protocol, port)| some(self.servers(&key, service, protocol, port)))
            }
            _ => Found::Nothing,
        }
    }

    /// The address of a Service, or those of the endpoints of a headless one.
    fn addresses(&self, key: &Key, service: &Service) -> Vec<Ipv4Addr> {
        match own_address(service) {
            Some(address) => vec![address],
            None => self.endpoints(key, service).map(|endpoint| endpoint.address).collect(),
        }
    }

    /// The endpoints of a headless Service that may be found.
    fn endpoints<'a>(&'a self, key: &'a Key, service: &'a Service) -> impl Iterator<Item = Reachable<'a>> {
        let spec = service.spec.as_ref();
        let headless = spec.is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None"));
        let all = spec.is_some_and(|spec| spec.publish_not_ready_addresses == Some(true));
        let slices = self.world.slices_of(key).filter(move |_| headless);
        slices.flat_map(move |slice| {
            let endpoints = slice.endpoints.iter().flatten();
            let usable = endpoints.filter(move |e| all || e.conditions.as_ref().and_then(|c| c.ready) != Some(false));
            usable.flat_map(move |endpoint| {
                let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
                addresses.map(move |address| Reachable { slice, endpoint, address })
            })
        })
    }

    /// The servers behind a named port.
    fn servers(&self, key: &Key, service: &Service, protocol: &str, port: &str) -> Vec<Data> {
        let is_meant = |name: Option<&str>, of: Option<&str>| {
            name.unwrap_or_default() == port && of.unwrap_or("TCP").eq_ignore_ascii_case(protocol)
        };
        let number = |port: i32| u16::try_from(port).ok();
        let full = self.full_name(key);
        if let Some(address) = own_address(service) {
            let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
            let meant = ports.filter(|port| is_meant(port.name.as_deref(), port.protocol.as_deref()));
            let servers = meant.filter_map(|port| number(port.port));
            return servers.map(|port| Data::Server { port, target: full.clone(), address }).collect();
        }
        let mut servers = Vec::new();
        for found in self.endpoints(key, service) {
            let ports = found.slice.ports.iter().flatten();
            let meant = ports.filter(|port| is_meant(port.name.as_deref(), port.protocol.as_deref()));
            let target = format!("{}.{full}", found.label());
            let numbers = meant.filter_map(|port| number(port.port?));
            servers.extend(numbers.map(|port| Data::Server { port, target: target.clone(), address: found.address }));
        }
        servers
    }

    /// Whose address it is. Loopback addresses are all the cluster's affair, of others those that it gave.
    fn reverse(&self, reversed: &str) -> Found {
        let octets: Vec<&str> = reversed.rsplit('.').collect();
        let Ok(address) = octets.join(".").parse::<Ipv4Addr>() else { return Found::Elsewhere };
        for (key, service) in &self.world.services {
            if own_address(service) == Some(address) {
                return Found::Records(vec![Data::Pointer(self.full_name(key))]);
            }
            if let Some(found) = self.endpoints(key, service).find(|found| found.address == address) {
                return Found::Records(vec![Data::Pointer(format!("{}.{}", found.label(), self.full_name(key)))]);
            }
        }
        if address.is_loopback() { Found::Nothing } else { Found::Elsewhere }
    }

    fn full_name(&self, (namespace, name): &Key) -> String {
        format!("{name}.{namespace}.svc.{}", self.domain)
    }
}

/// An endpoint of a headless Service at one of its addresses.
struct Reachable<'a> {
    slice: &'a EndpointSlice,
    endpoint: &'a Endpoint,
    address: Ipv4Addr,
}

impl Reachable<'_> {
    /// Its name below that of the Service: its host name, or its address.
    fn label(&self) -> String {
        let dashed = || self.address.to_string().replace('.', "-");
        self.endpoint.hostname.clone().filter(|name| !name.is_empty()).unwrap_or_else(dashed)
    }
}

fn some(records: Vec<Data>) -> Found {
    if records.is_empty() { Found::Nothing } else { Found::Records(records) }
}

fn is_external(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName")
}

fn own_address(service: &Service) -> Option<Ipv4Addr> {
    service.spec.as_ref()?.cluster_ip.as_ref()?.parse().ok()
}

/// The address in `127-64-128-5`.
fn undashed(label: &str) -> Option<Ipv4Addr> {
    label.replace('-', ".").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::tests::{service, slice, world};

    fn check(world: &World, name: &str, expect: Found) {
        assert_eq!(Zone { domain: "cluster.local", world }.find(name), expect, "{name}");
    }

    fn addresses(list: &[&str]) -> Found {
        Found::Records(list.iter().map(|address| Data::Address(address.parse().unwrap())).collect())
    }

    #[test]
    fn a_service_is_its_address() {
        let world = world(&[service()], &[slice(true)]);
        check(&world, "web.n.svc.cluster.local", addresses(&["127.64.0.9"]));
        check(&world, "WEB.n.svc.Cluster.Local.", addresses(&["127.64.0.9"]));
        check(&world, "web.other.svc.cluster.local", Found::Nothing);
        check(&world, "n.svc.cluster.local", addresses(&[]));
        check(&world, "m.svc.cluster.local", Found::Nothing);
        check(&world, "web-0.web.n.svc.cluster.local", Found::Nothing);
        let target = "web.n.svc.cluster.local".to_owned();
        let server = Data::Server { port: 8080, target, address: Ipv4Addr::new(127, 64, 0, 9) };
        check(&world, "_http._tcp.web.n.svc.cluster.local", Found::Records(vec![server]));
        check(&world, "_http._udp.web.n.svc.cluster.local", Found::Nothing);
        check(&world, "9.0.64.127.in-addr.arpa", Found::Records(vec![Data::Pointer("web.n.svc.cluster.local".into())]));
    }

    #[test]
    fn a_headless_service_is_its_ready_endpoints() {
        let mut headless = service();
        headless["spec"]["clusterIP"] = json!("None");
        let world = world(&[headless], &[slice(true)]);
        check(&world, "web.n.svc.cluster.local", addresses(&["127.64.128.1", "127.64.128.2"]));
        check(&world, "web-0.web.n.svc.cluster.local", addresses(&["127.64.128.1"]));
        check(&world, "127-64-128-2.web.n.svc.cluster.local", addresses(&["127.64.128.2"]));
        let server = |host: &str, last: u8| Data::Server {
            port: 80,
            target: format!("{host}.web.n.svc.cluster.local"),
            address: Ipv4Addr::new(127, 64, 128, last),
        };
        let servers = Found::Records(vec![server("web-0", 1), server("127-64-128-2", 2)]);
        check(&world, "_http._tcp.web.n.svc.cluster.local", servers);
        let pointer = Data::Pointer("web-0.web.n.svc.cluster.local".into());
        check(&world, "1.128.64.127.in-addr.arpa", Found::Records(vec![pointer]));
    }

    #[test]
    fn endpoints_that_are_not_ready_are_found_if_the_service_says_so() {
        let mut headless = service();
        headless["spec"]["clusterIP"] = json!("None");
        check(&world(&[headless.clone()], &[slice(false)]), "web.n.svc.cluster.local", addresses(&["127.64.128.1"]));
        headless["spec"]["publishNotReadyAddresses"] = json!(true);
        let both = addresses(&["127.64.128.1", "127.64.128.2"]);
        check(&world(&[headless], &[slice(false)]), "web.n.svc.cluster.local", both);
    }

    #[test]
    fn other_names_are_others_affair() {
        let mut external = service();
        external["spec"] = json!({"type": "ExternalName", "externalName": "db.example.com"});
        let world = world(&[external], &[]);
        check(&world, "web.n.svc.cluster.local", Found::Alias("db.example.com".into()));
        check(&world, "example.com", Found::Elsewhere);
        check(&world, "notcluster.local", Found::Elsewhere);
        check(&world, "1.2.3.10.in-addr.arpa", Found::Elsewhere);
        check(&world, "127-64-128-7.n.pod.cluster.local", addresses(&["127.64.128.7"]));
        check(&world, "dns-version.cluster.local", Found::Records(vec![Data::Text("1.1.0")]));
    }
}
