//! The socket that serves an address of a Service.

use std::io;
use std::net::SocketAddrV4;

use tokio::net::{TcpListener, UdpSocket};

use super::routes::{Front, Protocol};
use crate::low_port;

/// The socket that serves an address of a Service.
pub(super) enum Door {
    Stream(TcpListener),
    Datagram(UdpSocket),
}

/// Opens an address; where its port needs a privilege, the port that stands in for it, which is told.
pub(super) async fn open((protocol, address): Front) -> io::Result<(Door, Option<SocketAddrV4>)> {
    let (denied, port) = match (bind(protocol, address).await, low_port::stand_in(address.port())) {
        (Err(error), Some(port)) if error.kind() == io::ErrorKind::PermissionDenied => (error, port),
        (result, _) => return result.map(|door| (door, None)),
    };
    let other = SocketAddrV4::new(*address.ip(), port);
    let door = bind(protocol, other).await.map_err(|_| denied)?;
    Ok((door, Some(other)))
}

async fn bind(protocol: Protocol, address: SocketAddrV4) -> io::Result<Door> {
    match protocol {
        Protocol::Tcp => TcpListener::bind(address).await.map(Door::Stream),
        Protocol::Udp => UdpSocket::bind(address).await.map(Door::Datagram),
    }
}

/// Says where a port that needs a privilege is found instead.
pub(super) fn explain_stand_in(address: SocketAddrV4, other: SocketAddrV4) -> String {
    format!(
        "{address} is served at {other}: ports below 1024 need a privilege. Pods reach it at both; for programs \
         outside of Pods allow it with `sysctl net.ipv4.ip_unprivileged_port_start={}` as root",
        address.port()
    )
}

/// Says why an address is not served, and what to do.
pub(super) fn explain((protocol, address): Front, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{address} cannot be served: ports below 1024 need a privilege. Use a higher port, or allow it for everyone with \
             `sysctl net.ipv4.ip_unprivileged_port_start={port}` as root"
        ),
        io::ErrorKind::AddrInUse => {
            let option = if protocol == Protocol::Tcp { "-ltnp" } else { "-lunp" };
            format!(
                "{address} cannot be served: another program listens on port {port} (`ss {option} 'sport = :{port}'` shows it)"
            )
        }
        _ => format!("{address} cannot be served: {error}"),
    }
}
