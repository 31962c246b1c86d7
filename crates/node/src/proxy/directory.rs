//! How Pods find Services besides by the name server: environment variables, and names in `/etc/hosts`.

use std::net::Ipv4Addr;
use std::sync::{Arc, RwLock};

use k8s_openapi::api::core::v1::{Service, ServicePort};
use tokio::sync::watch;

use super::routes::{Key, World};

/// Names that one Pod's hosts file may have; a machine with more Services than that finds the rest by environment.
const NAMES_MAX: usize = 5000;

/// The Services that Pods can find.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    world: Arc<RwLock<Arc<World>>>,
    changes: watch::Sender<u64>,
    api: (Ipv4Addr, u16),
    domain: String,
}

impl Directory {
    pub(crate) fn new(api: (Ipv4Addr, u16), domain: String) -> Self {
        Self { world: Arc::default(), changes: watch::channel(0).0, api, domain }
    }

    /// Replaces what is known.
    pub(crate) fn set(&self, world: Arc<World>) {
        *self.world.write().expect("the lock is never held across a panic") = world;
        self.changes.send_modify(|version| *version += 1);
    }

    /// Changes whenever the Services or their endpoints do.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What is known.
    pub(crate) fn world(&self) -> Arc<World> {
        Arc::clone(&self.world.read().expect("the lock is never held across a panic"))
    }

    /// The variables that tell a container of a namespace where the API server and, with `links`, its Services are.
    pub(crate) fn environment(&self, namespace: &str, links: bool) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        if links {
            let world = self.world();
            let own = world.services.iter().filter(|((ns, name), _)| ns == namespace && name != "kubernetes");
            for ((_, name), service) in own {
                variables.extend(service_variables(name, service));
            }
        }
        let (host, port) = self.api;
        let api = [
            ("SERVICE_HOST".to_owned(), host.to_string()),
            ("SERVICE_PORT".to_owned(), port.to_string()),
            ("SERVICE_PORT_HTTPS".to_owned(), port.to_string()),
            ("PORT".to_owned(), format!("tcp://{host}:{port}")),
            (format!("PORT_{port}_TCP"), format!("tcp://{host}:{port}")),
            (format!("PORT_{port}_TCP_PROTO"), "tcp".to_owned()),
            (format!("PORT_{port}_TCP_PORT"), port.to_string()),
            (format!("PORT_{port}_TCP_ADDR"), host.to_string()),
        ];
        variables.extend(api.map(|(name, value)| (format!("KUBERNETES_{name}"), value)));
        variables
    }

    /// The lines of a hosts file that name the Services as seen from a namespace.
    pub(crate) fn hosts(&self, namespace: &str) -> String {
        let world = self.world();
        let mut lines = String::new();
        for (key, service) in world.services.iter().take(NAMES_MAX) {
            for (address, host) in records(&world, key, service) {
                let (service_namespace, name) = key;
                let name = host.map_or_else(|| name.clone(), |host| format!("{host}.{name}"));
                let full = format!("{name}.{service_namespace}.svc");
                let short = if service_namespace == namespace { format!(" {name}") } else { String::new() };
                lines.push_str(&format!("{address} {full}.{} {full} {name}.{service_namespace}{short}\n", self.domain));
            }
        }
        lines
    }
}

/// The addresses of a Service: its own, or for a headless one those of its endpoints, with host names.
fn records(world: &World, key: &Key, service: &Service) -> Vec<(String, Option<String>)> {
    let spec = service.spec.clone().unwrap_or_default();
    match spec.cluster_ip.as_deref() {
        Some("None") => {
            let endpoints = world.slices_of(key).flat_map(|slice| slice.endpoints.iter().flatten());
            let all = spec.publish_not_ready_addresses == Some(true);
            let usable = endpoints.filter(|e| all || e.conditions.as_ref().and_then(|c| c.ready) != Some(false));
            let mut records = Vec::new();
            for endpoint in usable {
                for address in &endpoint.addresses {
                    records.push((address.clone(), None));
                    records.extend(endpoint.hostname.clone().map(|host| (address.clone(), Some(host))));
                }
            }
            records
        }
        Some(address) if !address.is_empty() => vec![(address.to_owned(), None)],
        _ => Vec::new(),
    }
}

fn service_variables(name: &str, service: &Service) -> Vec<(String, String)> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let address = match spec.cluster_ip.as_deref() {
        Some(address) if address != "None" && !address.is_empty() => address,
        _ => return Vec::new(),
    };
    let upper = |text: &str| text.to_uppercase().replace(['-', '.'], "_");
    let prefix = upper(name);
    let ports = spec.ports.as_deref().unwrap_or_default();
    let mut variables = vec![(format!("{prefix}_SERVICE_HOST"), address.to_owned())];
    let scheme = |port: &ServicePort| port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
    if let Some(port) = ports.first() {
        variables.push((format!("{prefix}_SERVICE_PORT"), port.port.to_string()));
        variables.push((format!("{prefix}_PORT"), format!("{}://{address}:{}", scheme(port), port.port)));
    }
    for port in ports {
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        variables.extend(name.map(|name| (format!("{prefix}_SERVICE_PORT_{}", upper(name)), port.port.to_string())));
        let base = format!("{prefix}_PORT_{}_{}", port.port, scheme(port).to_uppercase());
        variables.push((base.clone(), format!("{}://{address}:{}", scheme(port), port.port)));
        variables.push((format!("{base}_PROTO"), scheme(port)));
        variables.push((format!("{base}_ADDR"), address.to_owned()));
        variables.push((format!("{base}_PORT"), port.port.to_string()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::routes::tests::{service, slice, world};
    use super::*;

    #[test]
    fn services_are_found_by_name_and_by_variable() {
        let directory = Directory::new((Ipv4Addr::new(127, 64, 0, 1), 6443), "cluster.local".to_owned());
        directory.set(Arc::new(world(&[service()], &[])));
        assert_eq!(directory.hosts("n"), "127.64.0.9 web.n.svc.cluster.local web.n.svc web.n web\n");
        assert_eq!(directory.hosts("other"), "127.64.0.9 web.n.svc.cluster.local web.n.svc web.n\n");
        let variables = directory.environment("n", true);
        let value = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(value("WEB_SERVICE_HOST"), Some("127.64.0.9"));
        assert_eq!(value("WEB_SERVICE_PORT_HTTP"), Some("8080"));
        assert_eq!(value("WEB_PORT"), Some("tcp://127.64.0.9:8080"));
        assert_eq!(value("WEB_PORT_8080_TCP_PROTO"), Some("tcp"));
        assert_eq!(value("KUBERNETES_SERVICE_PORT"), Some("6443"));
        assert!(directory.environment("other", true).iter().all(|(name, _)| !name.starts_with("WEB")));
    }

    #[test]
    fn a_headless_service_names_its_pods() {
        let directory = Directory::new((Ipv4Addr::LOCALHOST, 1), "cluster.local".to_owned());
        let mut headless = service();
        headless["spec"]["clusterIP"] = json!("None");
        directory.set(Arc::new(world(&[headless], &[slice(false)])));
        let hosts = directory.hosts("n");
        assert!(hosts.contains("127.64.128.1 web-0.web.n.svc.cluster.local"), "{hosts}");
        assert!(!hosts.contains("127.64.128.2"), "not ready");
    }
}
