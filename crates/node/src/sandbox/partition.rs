//! Cuts the sockets of a container off from others, without root and so that nothing of it stays.
//!
//! Three things make a cut. Who connects is led into a hole, where a connection neither succeeds nor fails, as in a network
//! that loses every packet. Sockets that listen, and those for datagrams, get a filter of the kernel's that drops what
//! comes from the other side. And what is connected already is broken off: on one machine a connection that only waited
//! would deliver everything later, which no broken network does.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;

use libc::sock_filter;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::confine::{duplicate, is_datagram};
use super::fault::{Cut, PEERS_MAX};
use super::filter::{give, jump_if, load};
use crate::sys;

/// Where a filter of packets finds the address of the sender: in the header of IP, which lies before what it is given.
const SENDER: u32 = (-0x10_0000_i32 + 12) as u32;
/// What a filter answers: how much of the packet is let through.
const DROP: u32 = 0;
const PASS: u32 = u32::MAX;

/// A container that is cut off.
#[derive(Debug)]
pub(crate) struct Partition {
    cut: Cut,
    own: Ipv4Addr,
    hole: Hole,
    /// Sockets that have the filter, by the number of their file.
    filtered: HashSet<u64>,
}

impl Partition {
    /// Prepares to cut the programs at `own` off.
    pub(crate) fn new(cut: Cut, own: Ipv4Addr) -> io::Result<Self> {
        Ok(Self { cut, own, hole: Hole::dig(own)?, filtered: HashSet::new() })
    }

    /// Changes what it cuts off from; the next sweep follows it.
    pub(crate) fn change(&mut self, cut: Cut) {
        if self.cut != cut {
            self.cut = cut;
            self.filtered.clear();
        }
    }

    /// Whether nothing goes to an address; a Pod is never cut off from itself.
    pub(crate) fn covers(&self, to: SocketAddrV4) -> bool {
        *to.ip() != self.own && self.cut.covers(to)
    }

    /// Where a socket is led that would connect to the other side.
    pub(crate) fn hole(&self, datagrams: bool) -> SocketAddrV4 {
        if datagrams { self.hole.swallows } else { self.hole.hangs }
    }

    /// Breaks off what is connected and bars what listens, in all these processes. To be repeated: a connection that was
    /// there but not yet accepted belongs to nobody.
    pub(crate) fn sweep(&mut self, processes: &[i32]) {
        let program = drops(&self.cut, self.own);
        let mut seen = HashSet::new();
        for (number, socket) in processes.iter().flat_map(|process| sockets(*process)) {
            if !seen.insert(number) {
                continue;
            }
            if peer(&socket).is_some_and(|peer| self.covers(peer)) {
                // What could not be broken off the next sweep tries again.
                let _ = break_off(&socket);
            }
            if !self.filtered.contains(&number) && takes_in(&socket) && sys::filter_packets(&socket, &program).is_ok() {
                self.filtered.insert(number);
            }
        }
        self.filtered.retain(|number| seen.contains(number));
    }

    /// Lets everything through again. Connections that were taken in meanwhile have their listener's filter.
    pub(crate) fn mend(self, processes: &[i32]) {
        for (_, socket) in processes.iter().flat_map(|process| sockets(*process)) {
            sys::pass_packets(&socket);
        }
    }
}

/// A listener that is never emptied: once its queue is full, the kernel drops what knocks.
#[derive(Debug)]
struct Hole {
    hangs: SocketAddrV4,
    swallows: SocketAddrV4,
    #[expect(dead_code, reason = "held open")]
    open: (OwnedFd, TcpStream, UdpSocket),
}

impl Hole {
    fn dig(own: Ipv4Addr) -> io::Result<Self> {
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        rustix::net::bind(&listener, &SocketAddrV4::new(own, 0))?;
        rustix::net::listen(&listener, 0)?;
        let hangs = SocketAddrV4::try_from(rustix::net::getsockname(&listener)?)?;
        let first = TcpStream::connect(hangs)?;
        let datagrams = UdpSocket::bind((own, 0))?;
        let SocketAddr::V4(swallows) = datagrams.local_addr()? else { return Err(Errno::AFNOSUPPORT.into()) };
        Ok(Self { hangs, swallows, open: (listener, first, datagrams) })
    }
}

/// The filter that drops what comes from the other side of a cut.
fn drops(cut: &Cut, own: Ipv4Addr) -> Vec<sock_filter> {
    let mut program = vec![load(SENDER), jump_if(own.into(), 0, 1), give(PASS)];
    if cut.everything {
        program.push(give(DROP));
        return program;
    }
    // A port is one to connect to: who comes from that address comes from any of its ports.
    let addresses = cut.peers.iter().filter(|peer| peer.port.is_none()).take(PEERS_MAX);
    program.extend(addresses.flat_map(|peer| [jump_if(peer.address.into(), 0, 1), give(DROP)]));
    program.push(give(PASS));
    program
}

/// The filter that a listener of the node's own gets, for those who are cut off from it.
pub(crate) fn bar(listener: impl std::os::fd::AsFd, cut: Option<&Cut>) {
    match cut {
        // A filter that could not be set leaves the door open to connections that are then broken off.
        Some(cut) => drop(sys::filter_packets(listener, &drops(cut, Ipv4Addr::UNSPECIFIED))),
        None => sys::pass_packets(listener),
    }
}

/// Whether others come to a socket by themselves.
fn takes_in(socket: &OwnedFd) -> bool {
    let is_inet = sockopt::socket_domain(socket) == Ok(AddressFamily::INET);
    is_inet && (is_datagram(socket) || sockopt::socket_acceptconn(socket) == Ok(true))
}

/// Who is at the other end of a connected socket.
fn peer(socket: &OwnedFd) -> Option<SocketAddrV4> {
    let peer = rustix::net::getpeername(socket).ok().flatten()?;
    SocketAddrV4::try_from(peer).ok()
}

/// Ends a connection as if its cable were cut: what was not yet delivered is lost, both sides learn that it is no more.
fn break_off(socket: &OwnedFd) -> Result<(), Errno> {
    match rustix::net::connect_unspec(socket) {
        // Some kernels refuse while a thread waits for the socket.
        Err(Errno::BUSY) => {
            rustix::net::shutdown(socket, rustix::net::Shutdown::Both)?;
            rustix::net::connect_unspec(socket)
        }
        other => other,
    }
}

/// The sockets of a process, with the numbers of their files.
fn sockets(process: i32) -> Vec<(u64, OwnedFd)> {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        let descriptor = entry.file_name().to_str()?.parse().ok()?;
        Some((number, duplicate(u32::try_from(process).ok()?, descriptor).ok()?))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::sandbox::fault::Peer;

    const OWN: Ipv4Addr = Ipv4Addr::new(127, 126, 203, 1);
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 126, 203, 2);
    const THIRD: Ipv4Addr = Ipv4Addr::new(127, 126, 203, 3);

    fn connect(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<TcpStream> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(Duration::from_millis(300)))?;
        rustix::net::connect(&socket, &to)?;
        Ok(TcpStream::from(socket))
    }

    fn v4(address: SocketAddr) -> SocketAddrV4 {
        match address {
            SocketAddr::V4(address) => address,
            SocketAddr::V6(_) => panic!("no IPv4"),
        }
    }

    #[test]
    fn a_cut_breaks_off_bars_and_is_mended() {
        let listener = TcpListener::bind((OWN, 0)).unwrap();
        let to = v4(listener.local_addr().unwrap());
        let mut client = connect(OTHER, to).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut kept = connect(THIRD, to).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let cut = Cut { everything: false, peers: [Peer { address: OTHER, port: None }].into() };
        let mut partition = Partition::new(cut, OWN).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        partition.sweep(&[own]);
        assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert!(server.write(b"x").is_err(), "both sides know");
        other.write_all(b"y").unwrap();
        kept.read_exact(&mut [0; 1]).unwrap();
        assert!(connect(OTHER, to).is_err(), "who is cut off does not get in");
        connect(THIRD, to).unwrap();
        let hole = partition.hole(false);
        assert!(connect(OWN, hole).is_err() && connect(OWN, hole).is_err(), "a hole neither takes nor refuses");
        assert!(partition.covers(SocketAddrV4::new(OTHER, 1)) && !partition.covers(SocketAddrV4::new(THIRD, 1)));
        partition.mend(&[own]);
        connect(OTHER, to).unwrap();
    }
}
