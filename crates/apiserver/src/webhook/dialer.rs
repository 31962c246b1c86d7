//! Connections to webhooks and other servers: of a host by its name, of a Service by its endpoints.

use std::{
    io,
    net::IpAddr,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use rand::seq::SliceRandom;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};
use tower::Service;
use windlass_store::{Snapshot, Store};

use super::destination::Destination;
use crate::object::Object;

/// How many endpoints of a Service are tried.
const ENDPOINTS_MAX: usize = 3;
/// How long one address may take to answer.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Opens connections to one destination.
#[derive(Clone, Debug)]
pub(crate) struct Dialer {
    pub(super) store: Store,
    pub(super) destination: Destination,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let mut last = io::Error::other("there is no address to connect to");
            for (host, port) in dialer.addresses()?.into_iter().take(ENDPOINTS_MAX) {
                match connect(&host, port).await {
                    Ok(stream) => return Ok(TokioIo::new(stream)),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })
    }
}

/// Why nobody answers for a Service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnservedError {
    #[error("service {0:?} not found")]
    NotFound(String),
    #[error("no service port {0} found for service {1:?}")]
    NotListening(u16, String),
    #[error("no endpoints available for service {0:?}")]
    WithoutEndpoints(String),
}

impl Dialer {
    /// Opens connections to a port of a Service.
    pub(crate) fn of_service(store: Store, namespace: &str, name: &str, port: u16) -> Self {
        let destination = Destination::Service { namespace: namespace.to_owned(), name: name.to_owned(), port };
        Self { store, destination }
    }

    fn addresses(&self) -> io::Result<Vec<(String, u16)>> {
        match &self.destination {
            Destination::Host(host, port) => Ok(vec![(host.clone(), *port)]),
            Destination::Service { namespace, name, port } => {
                let mut addresses =
                    service_addresses(&self.store.snapshot(), namespace, name, *port).map_err(io::Error::other)?;
                addresses.shuffle(&mut rand::rng());
                Ok(addresses)
            }
        }
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let failed = |why: String| io::Error::other(format!("dial tcp {host}:{port}: {why}"));
    match timeout(CONNECT_TIME_MAX, TcpStream::connect((host, port))).await {
        Ok(Ok(stream)) => {
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(failed("connect: connection refused".to_owned()))
        }
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed("i/o timeout".to_owned())),
    }
}

/// Where a port of a Service is served: at its endpoints, and where nobody keeps those, at its own address.
pub(crate) fn service_addresses(
    snapshot: &Snapshot,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Vec<(String, u16)>, UnservedError> {
    let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok();
    let service = snapshot.get(&format!("/core/services/{namespace}/{name}")).and_then(|entry| read(&entry.value));
    let service = service.ok_or_else(|| UnservedError::NotFound(name.to_owned()))?;
    let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/type") == "ExternalName" {
        return Ok(vec![(text("/spec/externalName").to_owned(), port)]);
    }
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let wanted = ports.clone().find(|known| known["port"] == port);
    let missing = || UnservedError::NotListening(port, name.to_owned());
    let port_name = wanted.ok_or_else(missing)?["name"].as_str().unwrap_or_default();
    let slices = service_slices(snapshot, namespace, name);
    if slices.is_empty() {
        return match text("/spec/clusterIP").parse::<IpAddr>() {
            Ok(address) => Ok(vec![(address.to_string(), port)]),
            Err(_) => Err(unserved(name)),
        };
    }
    let endpoints = slices.iter().flat_map(|slice| ready_endpoints(slice, port_name));
    let endpoints: Vec<_> = endpoints.map(|endpoint| (endpoint.address.to_owned(), endpoint.port)).collect();
    if endpoints.is_empty() { Err(unserved(name)) } else { Ok(endpoints) }
}

fn unserved(name: &str) -> UnservedError {
    UnservedError::WithoutEndpoints(name.to_owned())
}

/// The EndpointSlices of a Service.
pub(crate) fn service_slices(snapshot: &Snapshot, namespace: &str, name: &str) -> Vec<Value> {
    let prefix = format!("/discovery.k8s.io/endpointslices/{namespace}/");
    let slices = snapshot.range(&prefix, None).filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok());
    slices.filter(|slice: &Value| slice.label("kubernetes.io/service-name") == Some(name)).collect()
}

/// One address behind a port of a Service.
pub(crate) struct Endpoint<'a> {
    pub(crate) address: &'a str,
    pub(crate) port: u16,
    /// The object that has the address; `Null` if nobody says.
    pub(crate) target: &'a Value,
}

/// What a slice says of the port with this name.
pub(crate) fn ready_endpoints<'a>(slice: &'a Value, port_name: &str) -> Vec<Endpoint<'a>> {
    let ports = slice["ports"].as_array().into_iter().flatten();
    let port = ports.clone().find(|port| port["name"].as_str().unwrap_or_default() == port_name);
    let Some(port) = port.and_then(|port| port["port"].as_u64()).and_then(|port| u16::try_from(port).ok()) else {
        return Vec::new();
    };
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false);
    let addresses = ready.flat_map(|endpoint| {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
        addresses.map(|address| Endpoint { address, port, target: &endpoint["targetRef"] })
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_store::Write;

    use super::*;

    async fn addresses(service: Value, slice: Option<Value>) -> Result<Vec<(String, u16)>, String> {
        let store = Store::in_memory();
        let mut writes = vec![Write::create("/core/services/n/s", service.to_string())];
        writes.extend(slice.map(|slice| Write::create("/discovery.k8s.io/endpointslices/n/s-1", slice.to_string())));
        store.commit(writes).await.unwrap();
        service_addresses(&store.snapshot(), "n", "s", 443).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_service_is_reached_at_its_ready_endpoints() {
        let service =
            json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"name": "web", "port": 443, "targetPort": 9443}]}});
        let slice = |ready: bool| {
            Some(
                json!({"metadata": {"labels": {"kubernetes.io/service-name": "s"}}, "ports": [{"name": "web", "port": 9443}],
                "endpoints": [{"addresses": ["127.0.1.1"], "conditions": {"ready": ready}}]}),
            )
        };
        assert_eq!(addresses(service.clone(), slice(true)).await, Ok(vec![("127.0.1.1".to_owned(), 9443)]));
        let none = Err("no endpoints available for service \"s\"".to_owned());
        assert_eq!(addresses(service.clone(), slice(false)).await, none);
        assert_eq!(addresses(service, None).await, Ok(vec![("10.0.0.1".to_owned(), 443)]));
        let other = json!({"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}});
        assert_eq!(addresses(other, None).await, Err("no service port 443 found for service \"s\"".to_owned()));
        let external = json!({"spec": {"type": "ExternalName", "externalName": "a.example"}});
        assert_eq!(addresses(external, None).await, Ok(vec![("a.example".to_owned(), 443)]));
    }
}
