//! Ports below 1024 for users who may not have them: another port of the same address stands in.
//!
//! Whatever connects through Windlass (programs in Pods, Services, probes) finds the stand-in by itself, so that
//! manifests with such ports run as they are; clients outside have to use it by its number.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use tokio::net::TcpStream;

/// What is added to a port that needs a privilege.
const OFFSET: u16 = 20_000;
const PRIVILEGED_BELOW: u16 = 1024;

/// The port that stands in for one that needs a privilege; none for others.
pub(crate) fn stand_in(port: u16) -> Option<u16> {
    (1..PRIVILEGED_BELOW).contains(&port).then(|| port + OFFSET)
}

/// The lowest port that this process may listen on, as it was when first asked: who has entered the namespaces of a
/// container can no longer tell.
pub(crate) fn lowest() -> u16 {
    static LOWEST: OnceLock<u16> = OnceLock::new();
    *LOWEST.get_or_init(|| match std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 1)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let setting = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").ok();
            setting.and_then(|text| text.trim().parse().ok()).unwrap_or(PRIVILEGED_BELOW)
        }
        _ => 1,
    })
}

/// Where datagrams to an address go, as nobody refuses one: if this user may not have its port, nobody here can listen on it.
pub(crate) fn datagram_target(address: SocketAddr) -> SocketAddr {
    match stand_in(address.port()) {
        Some(port) if address.ip().is_loopback() && address.port() < lowest() => SocketAddr::new(address.ip(), port),
        _ => address,
    }
}

/// Connects to an address, or to the port that stands in for its own.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    match (TcpStream::connect(address).await, stand_in(address.port())) {
        (Err(error), Some(port)) if error.kind() == io::ErrorKind::ConnectionRefused && address.ip().is_loopback() => {
            TcpStream::connect(SocketAddr::new(address.ip(), port)).await
        }
        (result, _) => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_privileged_ports_have_a_stand_in() {
        let check = |port: u16, expect: Option<u16>| assert_eq!(stand_in(port), expect, "{port}");
        check(80, Some(20_080));
        check(1023, Some(21_023));
        check(0, None);
        check(1024, None);
        check(65_535, None);
    }

    #[tokio::test]
    async fn a_refused_connection_goes_to_the_stand_in() {
        let listener = tokio::net::TcpListener::bind("127.126.201.1:20079").await.unwrap();
        let connected = connect("127.126.201.1:79".parse().unwrap()).await.unwrap();
        assert_eq!(connected.peer_addr().unwrap(), listener.local_addr().unwrap());
    }
}
