//! Faults that a container is made to suffer, as the node orders them from its supervisor.
//!
//! An order is the whole of what a container suffers from then on. The supervisor undoes it when its time is over and when
//! the node is gone, and the container ends with its supervisor: so nothing outlasts whoever ordered it.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Addresses that one container is cut off from; the kernel's filters hold no more.
pub(crate) const PEERS_MAX: usize = 1000;

/// All that a container suffers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Tells the answer to this order from those to earlier ones.
    pub number: u64,
    /// After this time all of it is undone, whatever becomes of the node.
    pub limit: Duration,
    /// Whether its processes are stopped.
    pub paused: bool,
    /// What it is cut off from.
    pub cut: Option<Cut>,
    /// What is wrong with its files.
    pub disk: Option<Disk>,
    /// By how many seconds its clock is wrong.
    pub skew: Option<i64>,
}

impl Faults {
    /// Whether nothing is wrong.
    pub fn is_nothing(&self) -> bool {
        !self.paused && self.cut.is_none() && self.disk.is_none() && self.skew.is_none()
    }

    /// Both together; of two clocks the later order counts, of two delays the longer.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            number: self.number.max(other.number),
            limit: self.limit.max(other.limit),
            paused: self.paused || other.paused,
            cut: both(self.cut, other.cut, Cut::and),
            disk: both(self.disk, other.disk, Disk::and),
            skew: other.skew.or(self.skew),
        }
    }
}

fn both<T>(one: Option<T>, other: Option<T>, and: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(and(one, other)),
        (one, other) => one.or(other),
    }
}

/// What something is cut off from, both ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// All but itself.
    pub everything: bool,
    /// These.
    pub peers: BTreeSet<Peer>,
}

/// An address, or one port of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// The address.
    pub address: Ipv4Addr,
    /// The port, if only that is meant: then what comes from the address is let in.
    pub port: Option<u16>,
}

impl Cut {
    /// A cut from everything.
    pub(crate) fn from_everything() -> Self {
        Self { everything: true, peers: BTreeSet::new() }
    }

    /// Whether nothing goes to `to`.
    pub(crate) fn covers(&self, to: SocketAddrV4) -> bool {
        let one = |port| Peer { address: *to.ip(), port };
        self.everything || self.peers.contains(&one(None)) || self.peers.contains(&one(Some(to.port())))
    }

    /// Whether nothing comes from `address`.
    pub(crate) fn covers_all_of(&self, address: Ipv4Addr) -> bool {
        self.everything || self.peers.contains(&Peer { address, port: None })
    }

    fn and(mut self, other: Self) -> Self {
        self.everything |= other.everything;
        self.peers.extend(other.peers);
        self
    }
}

/// What is wrong with files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Below these paths of the container no file can grow.
    pub full: Vec<PathBuf>,
    /// Below these paths every write and flush takes so much longer.
    pub slow: Vec<(PathBuf, Duration)>,
}

impl Disk {
    /// Whether a file at `path` cannot grow.
    pub(crate) fn is_full(&self, path: &Path) -> bool {
        self.full.iter().any(|full| path.starts_with(full))
    }

    /// How much longer a write to `path` takes.
    pub(crate) fn delay(&self, path: &Path) -> Duration {
        let delays = self.slow.iter().filter(|(slow, _)| path.starts_with(slow)).map(|(_, delay)| *delay);
        delays.max().unwrap_or_default()
    }

    fn and(mut self, other: Self) -> Self {
        self.full.extend(other.full);
        self.slow.extend(other.slow);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    #[test]
    fn a_cut_is_from_an_address_or_from_one_port_of_it() {
        let peer = |text: &str, port| Peer { address: text.parse().unwrap(), port };
        let cut = Cut { everything: false, peers: [peer("127.64.128.2", None), peer("127.64.0.1", Some(6443))].into() };
        assert!(cut.covers(at("127.64.128.2:80")) && cut.covers(at("127.64.0.1:6443")));
        assert!(!cut.covers(at("127.64.0.1:53")) && !cut.covers(at("127.64.128.3:80")));
        assert!(cut.covers_all_of(*at("127.64.128.2:1").ip()) && !cut.covers_all_of(*at("127.64.0.1:1").ip()));
        assert!(Cut::from_everything().covers(at("10.0.0.1:1")));
    }

    #[test]
    fn orders_of_two_add_up() {
        let paused = Faults { number: 1, paused: true, limit: Duration::from_secs(9), ..Faults::default() };
        let slow = Disk { slow: vec![("/data".into(), Duration::from_millis(5))], ..Disk::default() };
        let other = Faults { number: 2, disk: Some(slow), skew: Some(-3), ..Faults::default() };
        let both = paused.and(other);
        assert_eq!((both.number, both.limit, both.paused, both.skew), (2, Duration::from_secs(9), true, Some(-3)));
        assert_eq!(both.disk.as_ref().unwrap().delay(Path::new("/data/x")), Duration::from_millis(5));
        assert_eq!(both.disk.as_ref().unwrap().delay(Path::new("/database")), Duration::ZERO);
        assert!(Faults::default().is_nothing() && !both.is_nothing());
    }
}
