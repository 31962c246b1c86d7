//! Where the sockets of a Pod may be and where they lead, decided without I/O.

use std::net::{Ipv4Addr, SocketAddrV4};

/// What becomes of a call with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Make the call with this address.
    Use(SocketAddrV4),
    /// Leave it to the kernel.
    Pass,
    /// Refuse with this errno.
    Refuse(i32),
}

/// Where a `bind` to `wanted` goes in a Pod with address `own`.
pub(crate) fn bind_verdict(own: Ipv4Addr, wanted: SocketAddrV4) -> Verdict {
    if wanted.ip().is_unspecified() || is_localhost(*wanted.ip()) || *wanted.ip() == own {
        Verdict::Use(SocketAddrV4::new(own, wanted.port()))
    } else {
        Verdict::Refuse(libc::EADDRNOTAVAIL)
    }
}

/// Where a `connect` to `wanted` goes in a Pod with address `own`.
pub(crate) fn connect_verdict(own: Ipv4Addr, wanted: SocketAddrV4) -> Verdict {
    if wanted.ip().is_unspecified() || is_localhost(*wanted.ip()) {
        Verdict::Use(SocketAddrV4::new(own, wanted.port()))
    } else if wanted.ip().is_loopback() {
        Verdict::Use(wanted)
    } else {
        Verdict::Pass
    }
}

/// 127.0.0.0/10 is the Pod's own localhost; the ranges of Pods and Services lie above it.
fn is_localhost(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 127 && second < 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(127, 64, 128, 5);

    fn at(address: &str) -> SocketAddrV4 {
        address.parse().unwrap()
    }

    #[test]
    fn bind_stays_on_the_pod_address() {
        for wanted in ["0.0.0.0:80", "127.0.0.1:80", "127.0.1.1:80", "127.64.128.5:80"] {
            assert_eq!(bind_verdict(OWN, at(wanted)), Verdict::Use(at("127.64.128.5:80")), "{wanted}");
        }
        for wanted in ["10.0.0.1:80", "127.64.128.6:80", "127.64.0.1:443"] {
            assert_eq!(bind_verdict(OWN, at(wanted)), Verdict::Refuse(libc::EADDRNOTAVAIL), "{wanted}");
        }
    }

    #[test]
    fn localhost_is_the_pod_and_the_rest_is_left_alone() {
        assert_eq!(connect_verdict(OWN, at("127.0.0.1:80")), Verdict::Use(at("127.64.128.5:80")));
        assert_eq!(connect_verdict(OWN, at("127.64.0.1:443")), Verdict::Use(at("127.64.0.1:443")));
        assert_eq!(connect_verdict(OWN, at("10.1.2.3:443")), Verdict::Pass);
    }
}
