//! Where a request is passed on to: a port of a Pod, one of those behind a Service, or the agent of a node.

use rand::seq::SliceRandom;
use serde_json::Value;
use windlass_store::Snapshot;

use super::name::{ProxyName, Scheme};
use crate::{
    ApiError, Subject,
    object::Object,
    webhook::{ready_endpoints, service_slices},
};

/// The port by which kubelets are known; our agents have no other.
const AGENT_PORT: &str = "10250";

/// Where a request is passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Pod(PodPort),
    /// The agent of the node with this name.
    Agent(String),
}

/// A port of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodPort {
    pub(super) scheme: Scheme,
    pub(super) node: String,
    pub(super) namespace: String,
    pub(super) pod: String,
    /// The address of the Pod, as others know it.
    pub(super) address: String,
    pub(super) port: u16,
}

/// Where `name` of the kind `plural` leads.
pub(super) fn find(snapshot: &Snapshot, plural: &str, namespace: &str, name: &str) -> Result<Destination, ApiError> {
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    let parsed = ProxyName::parse(name);
    let parsed = parsed.ok_or_else(|| ApiError::bad_request(format!("invalid {singular} request {name:?}")))?;
    match plural {
        "pods" => of_pod(snapshot, namespace, parsed).map(Destination::Pod),
        "services" => of_service(snapshot, namespace, parsed).map(Destination::Pod),
        _ => of_node(snapshot, parsed),
    }
}

fn read(snapshot: &Snapshot, plural: &'static str, namespace: &str, name: &str) -> Result<Value, ApiError> {
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let entry = snapshot.get(&format!("/core/{plural}/{place}"));
    let entry = entry.ok_or_else(|| ApiError::not_found(Subject { group: "", resource: plural }, name))?;
    serde_json::from_slice(&entry.value).map_err(ApiError::internal)
}

fn of_pod(snapshot: &Snapshot, namespace: &str, wanted: ProxyName<'_>) -> Result<PodPort, ApiError> {
    let pod = read(snapshot, "pods", namespace, wanted.name)?;
    let port = match wanted.port {
        "" => first_port(&pod).unwrap_or(wanted.scheme.port()),
        port => number(port).ok_or_else(|| {
            ApiError::bad_request(format!("{port:?} is no port: the ports of a Pod are given by number"))
        })?,
    };
    let address = pod.pointer("/status/podIP").and_then(Value::as_str).unwrap_or_default();
    if address.is_empty() {
        return Err(ApiError::bad_request(format!("address not allowed: pod {:?} has none yet", wanted.name)));
    }
    Ok(pod_port(&pod, wanted.scheme, address, port))
}

fn pod_port(pod: &Value, scheme: Scheme, address: &str, port: u16) -> PodPort {
    PodPort {
        scheme,
        node: pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default().to_owned(),
        namespace: pod.namespace().to_owned(),
        pod: pod.name().to_owned(),
        address: address.to_owned(),
        port,
    }
}

fn number(port: &str) -> Option<u16> {
    port.parse().ok().filter(|port| *port > 0)
}

/// The first port that a container names.
fn first_port(pod: &Value) -> Option<u16> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array)?;
    let mut ports = containers.iter().filter_map(|container| container.pointer("/ports/0/containerPort"));
    u16::try_from(ports.next()?.as_u64()?).ok()
}

fn of_service(snapshot: &Snapshot, namespace: &str, wanted: ProxyName<'_>) -> Result<PodPort, ApiError> {
    let service = read(snapshot, "services", namespace, wanted.name)?;
    let port_name = port_name(&service, wanted)?;
    let slices = service_slices(snapshot, namespace, wanted.name);
    let mut endpoints: Vec<_> = slices.iter().flat_map(|slice| ready_endpoints(slice, &port_name)).collect();
    endpoints.shuffle(&mut rand::rng());
    let found = endpoints.into_iter().find_map(|endpoint| {
        let pod = behind(snapshot, namespace, endpoint.target, endpoint.address)?;
        Some(pod_port(&pod, wanted.scheme, endpoint.address, endpoint.port))
    });
    found.ok_or_else(|| ApiError::unavailable(format!("no endpoints available for service {:?}", wanted.name)))
}

/// The name of the port that is meant, as EndpointSlices have it.
fn port_name(service: &Value, wanted: ProxyName<'_>) -> Result<String, ApiError> {
    let Ok(number) = wanted.port.parse::<u64>() else { return Ok(wanted.port.to_owned()) };
    let mut ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let port = ports.find(|port| port["port"].as_u64() == Some(number));
    let missing = || ApiError::unavailable(format!("no service port {number} found for service {:?}", wanted.name));
    Ok(port.ok_or_else(missing)?["name"].as_str().unwrap_or_default().to_owned())
}

/// The Pod behind an endpoint. Endpoints can be written by those who may not reach everything that this server
/// reaches, so an address counts only if it is that of a Pod of the same namespace.
fn behind(snapshot: &Snapshot, namespace: &str, target: &Value, address: &str) -> Option<Value> {
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    if text("kind") != "Pod" || text("namespace") != namespace {
        return None;
    }
    let pod = read(snapshot, "pods", namespace, text("name")).ok()?;
    let first = pod.pointer("/status/podIP").into_iter();
    let all = pod.pointer("/status/podIPs").and_then(Value::as_array).into_iter().flatten();
    let mut addresses = first.chain(all.map(|address| &address["ip"]));
    let is_its_own = addresses.any(|known| known == address);
    drop(addresses);
    is_its_own.then_some(pod)
}

fn of_node(snapshot: &Snapshot, wanted: ProxyName<'_>) -> Result<Destination, ApiError> {
    read(snapshot, "nodes", "", wanted.name)?;
    if !matches!(wanted.port, "" | AGENT_PORT) {
        let port = wanted.port;
        return Err(ApiError::bad_request(format!(
            "address not allowed: of a node only its agent is reached, without a port or at {AGENT_PORT}, not at {port:?}"
        )));
    }
    Ok(Destination::Agent(wanted.name.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_store::{Store, Write};

    use super::*;

    fn pod(name: &str, address: &str) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "n"},
            "spec": {"nodeName": "here", "containers": [{"name": "a"}, {"name": "b", "ports": [{"containerPort": 8080}]}]},
            "status": {"podIP": address, "podIPs": [{"ip": address}]},
        })
    }

    fn endpoint(pod: &str, address: &str, ready: bool) -> Value {
        json!({"addresses": [address], "conditions": {"ready": ready},
            "targetRef": {"kind": "Pod", "namespace": "n", "name": pod}})
    }

    async fn world() -> Snapshot {
        let store = Store::in_memory();
        let service = json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"ports": [
            {"name": "web", "port": 80}, {"name": "tls", "port": 443}]}});
        let slice = json!({
            "metadata": {"labels": {"kubernetes.io/service-name": "s"}},
            "ports": [{"name": "web", "port": 9376}],
            "endpoints": [
                endpoint("p", "127.0.1.1", true),
                endpoint("q", "127.0.1.2", false),
                // Not the address of the Pod, and no Pod at all.
                endpoint("q", "127.0.1.3", true),
                {"addresses": ["169.254.0.1"], "conditions": {"ready": true}},
            ],
        });
        let objects = [
            ("/core/pods/n/p", pod("p", "127.0.1.1")),
            ("/core/pods/n/q", pod("q", "127.0.1.2")),
            ("/core/pods/n/new", pod("new", "")),
            ("/core/services/n/s", service.clone()),
            ("/core/services/n/lonely", service),
            ("/core/nodes/here", json!({"metadata": {"name": "here"}})),
            ("/discovery.k8s.io/endpointslices/n/s-1", slice),
        ];
        let writes = objects.map(|(key, object)| Write::create(key, object.to_string()));
        store.commit(writes.into()).await.unwrap();
        store.snapshot()
    }

    fn told(found: Result<Destination, ApiError>) -> Result<String, (u16, String)> {
        match found {
            Ok(Destination::Pod(to)) => {
                Ok(format!("{:?} {}/{} {}:{}", to.scheme, to.namespace, to.pod, to.address, to.port))
            }
            Ok(Destination::Agent(name)) => Ok(format!("agent of {name}")),
            Err(error) => Err((error.code.as_u16(), error.message)),
        }
    }

    #[tokio::test]
    async fn names_lead_to_ports_of_pods() {
        let snapshot = world().await;
        let check = |plural: &str, name: &str, expect: &str| {
            let namespace = if plural == "nodes" { "" } else { "n" };
            assert_eq!(told(find(&snapshot, plural, namespace, name)), Ok(expect.to_owned()), "{plural} {name}");
        };
        check("pods", "p", "Http n/p 127.0.1.1:8080");
        check("pods", "p:9000", "Http n/p 127.0.1.1:9000");
        check("pods", "https:p:9000", "Https n/p 127.0.1.1:9000");
        check("services", "s:web", "Http n/p 127.0.1.1:9376");
        check("services", "s:80", "Http n/p 127.0.1.1:9376");
        check("services", "https:s:web", "Https n/p 127.0.1.1:9376");
        check("nodes", "here", "agent of here");
        check("nodes", "https:here:10250", "agent of here");
    }

    #[tokio::test]
    async fn what_leads_nowhere_is_said() {
        let snapshot = world().await;
        let check = |plural: &str, name: &str, code: u16, expect: &str| {
            let namespace = if plural == "nodes" { "" } else { "n" };
            let (found, message) = told(find(&snapshot, plural, namespace, name)).unwrap_err();
            assert_eq!(found, code, "{plural} {name}");
            assert!(message.contains(expect), "{message}");
        };
        check("pods", "a:b:c:d", 400, "invalid pod request \"a:b:c:d\"");
        check("pods", "none", 404, "pods \"none\" not found");
        check("pods", "new", 400, "address not allowed");
        check("pods", "p:web", 400, "by number");
        check("pods", "p:0", 400, "by number");
        check("services", "none", 404, "services \"none\" not found");
        check("services", "s:81", 503, "no service port 81 found for service \"s\"");
        check("services", "s:tls", 503, "no endpoints available for service \"s\"");
        check("services", "s", 503, "no endpoints available for service \"s\"");
        check("services", "lonely:web", 503, "no endpoints available for service \"lonely\"");
        check("nodes", "none", 404, "nodes \"none\" not found");
        check("nodes", "here:22", 400, "address not allowed");
    }
}
