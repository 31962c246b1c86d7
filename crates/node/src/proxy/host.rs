//! Ports of the machine that lead to a Pod.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::door::{self, Door};
use super::leaving::Leaving;
use super::routes::{Front, Protocol, Route};
use super::{datagrams, forward};
use crate::chaos::Cuts;
use crate::host_port::{self, HostPort};
use crate::machine;

/// The open ports of one Pod; closed when dropped.
#[derive(Debug, Default)]
pub(crate) struct HostPorts {
    tasks: Vec<AbortOnDropHandle<()>>,
    /// What there is to say about them.
    pub(crate) notices: Vec<String>,
}

impl HostPorts {
    /// Opens the ports that a Pod asks for and leads them to its address; `node` is the node's own.
    ///
    /// A port of all addresses is opened at each one of the machine, not at the wildcard: that would take the port from
    /// every Pod, as their addresses are the machine's, too.
    ///
    /// # Errors
    /// Which port cannot be had and why; none is open then.
    pub(crate) async fn open(pod: &Pod, address: Ipv4Addr, (node, cuts): (Ipv4Addr, &Cuts)) -> Result<Self, String> {
        let mut open = Self::default();
        for port in host_port::served(pod) {
            let Some(protocol) = Protocol::of(Some(&port.protocol)) else {
                open.notices.push(format!("port {} of the node is not served: {}", port.number, port.protocol));
                continue;
            };
            let (Ok(number), Ok(target)) = (u16::try_from(port.number), u16::try_from(port.target)) else { continue };
            let Some(fronts) = fronts(&port, node) else {
                let notice =
                    format!("port {number} of the node is not served at {}: Pods have IPv4 only", port.address);
                open.notices.push(notice);
                continue;
            };
            for front in fronts {
                let front = (protocol, SocketAddrV4::new(front, number));
                open.serve(front, SocketAddr::from((address, target)), (node, cuts)).await?;
            }
        }
        Ok(open)
    }

    /// Closes the ports; when this is done they are free.
    pub(crate) async fn close(self) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
    }

    async fn serve(
        &mut self,
        front: Front,
        backend: SocketAddr,
        (node, cuts): (Ipv4Addr, &Cuts),
    ) -> Result<(), String> {
        let (door, stand_in) = match door::open(front).await {
            Ok(open) => open,
            // An interface that went away.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && front.1.ip() != &node => {
                self.notices.push(format!("{} is no address of this machine", front.1.ip()));
                return Ok(());
            }
            Err(error) => return Err(format!("host port {}: {}", front.1.port(), door::explain(front, &error))),
        };
        self.notices.extend(stand_in.map(|other| door::explain_stand_in(front.1, other)));
        let route = Route { service: Default::default(), backends: vec![backend], sticky: false };
        // Nobody changes it: the Pod keeps its address.
        let (_, route) = watch::channel(Arc::new(route));
        let task = match door {
            Door::Stream(listener) => tokio::spawn(forward::serve(listener, route, Leaving::default(), cuts.clone())),
            Door::Datagram(socket) => {
                tokio::spawn(datagrams::serve(socket, node, route, (Leaving::default(), cuts.clone())))
            }
        };
        self.tasks.push(AbortOnDropHandle::new(task));
        Ok(())
    }
}

/// The addresses at which a port is opened; none for one that is not IPv4.
fn fronts(port: &HostPort, node: Ipv4Addr) -> Option<Vec<Ipv4Addr>> {
    let asked: Ipv4Addr = port.address.parse().ok()?;
    if !asked.is_unspecified() {
        return Some(vec![asked]);
    }
    let mut all = machine::addresses();
    all.insert(node);
    Some(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    const POD: Ipv4Addr = Ipv4Addr::new(127, 126, 202, 1);
    const NODE: Ipv4Addr = Ipv4Addr::new(127, 126, 202, 2);

    fn pod(ports: Value) -> Pod {
        serde_json::from_value(json!({"spec": {"containers": [{"name": "c", "ports": ports}]}})).unwrap()
    }

    /// A port that is free everywhere for a moment.
    fn free() -> u16 {
        std::net::TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn a_port_of_the_machine_leads_to_the_pod_that_has_it_too() {
        let port = free();
        let wanted = pod(json!([{"containerPort": port, "hostPort": port, "protocol": "TCP"}]));
        let open = HostPorts::open(&wanted, POD, (NODE, &Cuts::default())).await.unwrap();
        let program = TcpListener::bind((POD, port)).await.expect("the port is the Pod's as well");
        for address in machine::addresses().into_iter().chain([NODE]) {
            let mut client = TcpStream::connect((address, port)).await.unwrap();
            program.accept().await.unwrap().0.write_all(b"hello").await.unwrap();
            let mut said = String::new();
            client.read_to_string(&mut said).await.unwrap();
            assert_eq!(said, "hello", "{address}");
        }
        let taken = HostPorts::open(&wanted, POD, (NODE, &Cuts::default())).await.unwrap_err();
        assert!(taken.contains(&format!("another program listens on port {port}")), "{taken}");
        open.close().await;
        TcpListener::bind((NODE, port)).await.expect("the port is free again");
    }

    #[tokio::test]
    async fn datagrams_are_asked_from_the_node_and_answered_to_the_client() {
        let (port, program) = (free(), UdpSocket::bind((POD, 0)).await.unwrap());
        let target = program.local_addr().unwrap().port();
        let ports = json!([{"containerPort": target, "hostPort": port, "hostIP": "127.0.0.1", "protocol": "UDP"}]);
        let _open = HostPorts::open(&pod(ports), POD, (NODE, &Cuts::default())).await.unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(("127.0.0.1", port)).await.unwrap();
        client.send(b"question").await.unwrap();
        let mut buffer = [0; 16];
        let (length, from) = program.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..length], from.ip()), (&b"question"[..], NODE.into()));
        program.send_to(b"answer", from).await.unwrap();
        assert_eq!(client.recv(&mut buffer).await.unwrap(), 6);
    }

    #[tokio::test]
    async fn what_cannot_be_served_is_told() {
        let port = free();
        let ports = json!([{"containerPort": 1, "hostPort": port, "hostIP": "::1"},
            {"containerPort": 1, "hostPort": port, "protocol": "SCTP"}]);
        let open = HostPorts::open(&pod(ports), POD, (NODE, &Cuts::default())).await.unwrap();
        assert_eq!((open.tasks.len(), open.notices.len()), (0, 2), "{:?}", open.notices);
    }
}
