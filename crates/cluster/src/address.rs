//! The range of addresses that one cluster owns: `127.X.0.0/16`, or one of the machine's where Pods have networks of their own.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::str::FromStr;

use windlass_node::AddressRange;
use windlass_node::network::{Network, NetworkError};
use windlass_node::runc::Runc;

use crate::directory::write_private;
use crate::{ClusterConfig, Directory, Isolation, StartError};

const LOOPBACK: u8 = 127;
/// The first byte of ranges that are chosen for networks of Pods.
const PRIVATE: u8 = 10;
const FIRST: u8 = 64;
const LAST: u8 = 126;

/// `A.B.0.0/16`: the API server, the Services in the lower half, the Pods in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRange([u8; 2]);

/// A text that is not a range for a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of private addresses such as 10.77.0.0/16")]
pub struct UnknownRange(String);

impl ClusterRange {
    /// The address of the API server, which the `kubernetes` Service has, too.
    pub fn api(self) -> Ipv4Addr {
        self.at(0, 1)
    }

    /// The network of Services and the length of its prefix.
    pub fn services(self) -> (Ipv4Addr, u8) {
        (self.at(0, 0), 17)
    }

    /// The network of Pods and the length of its prefix.
    pub fn pods(self) -> (Ipv4Addr, u8) {
        (self.at(128, 0), 17)
    }

    /// Whether Pods with addresses of this range have networks of their own.
    pub fn has_networks(self) -> bool {
        self.0[0] != LOOPBACK
    }

    /// Where the API server of an instance in memory listens.
    pub fn first() -> Self {
        ClusterRange([LOOPBACK, FIRST])
    }

    fn at(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(self.0[0], self.0[1], third, fourth)
    }

    pub(crate) fn candidates(isolation: Isolation, start: u64) -> impl Iterator<Item = Self> {
        let first = if isolation.has_networks() { PRIVATE } else { LOOPBACK };
        let count = LAST - FIRST + 1;
        let offset = u8::try_from(start % u64::from(count)).expect("the rest is below the count");
        (0..count).map(move |step| ClusterRange([first, FIRST + (offset + step) % count]))
    }
}

impl std::fmt::Display for ClusterRange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/16", self.at(0, 0))
    }
}

impl FromStr for ClusterRange {
    type Err = UnknownRange;

    fn from_str(text: &str) -> Result<Self, UnknownRange> {
        let unknown = || UnknownRange(text.to_owned());
        let address: Ipv4Addr = text
            .strip_suffix(".0.0/16")
            .map(|start| format!("{start}.0.0"))
            .and_then(|a| a.parse().ok())
            .ok_or_else(unknown)?;
        let [first, second, ..] = address.octets();
        let is_own = first == LOOPBACK && (FIRST..=LAST).contains(&second);
        if is_own || address.is_private() { Ok(ClusterRange([first, second])) } else { Err(unknown()) }
    }
}

/// What a cluster remembers of its first start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    range: ClusterRange,
    isolation: Isolation,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.isolation == Isolation::Runc { " runc" } else { "" };
        write!(formatter, "{}{word}", self.range)
    }
}

impl FromStr for Choice {
    type Err = UnknownRange;

    fn from_str(text: &str) -> Result<Self, UnknownRange> {
        let (range, is_runc) = text.strip_suffix(" runc").map_or((text, false), |range| (range, true));
        let range: ClusterRange = range.parse()?;
        let isolation = match (range.has_networks(), is_runc) {
            (true, true) => Isolation::Runc,
            (true, false) => Isolation::Namespaces,
            (false, _) => Isolation::Sandbox,
        };
        Ok(Choice { range, isolation })
    }
}

/// What a cluster has taken of the machine.
pub(crate) struct Taken {
    pub(crate) range: ClusterRange,
    pub(crate) listener: Option<TcpListener>,
    pub(crate) network: Option<Network>,
    pub(crate) runc: Option<Runc>,
}

impl Taken {
    fn take(choice: Choice, directory: &Directory, port: Option<u16>) -> Result<Self, StartError> {
        let Choice { range, isolation } = choice;
        let is_runc = isolation == Isolation::Runc;
        let runc = is_runc.then(|| Runc::find(&directory.node())).transpose()?;
        let network = isolation.has_networks().then(|| {
            let half = |(network, prefix)| AddressRange { network, prefix };
            Network::begin(&directory.node(), half(range.pods()), half(range.services()))
        });
        let network = network.transpose()?;
        match port.map(|port| bind((range.api(), port).into())).transpose() {
            Ok(listener) => Ok(Self { range, listener, network, runc }),
            Err(error) => {
                network.iter().for_each(Network::end);
                Err(error)
            }
        }
    }
}

/// Takes what a directory's cluster needs of the machine: a range of addresses, and in it the listener of its API server.
///
/// The first start chooses a range that is free, beginning with one that depends on the directory alone; later starts keep it,
/// because the objects in the store carry its addresses.
///
/// # Errors
/// If the port is in use, the choice cannot be remembered, or it is not what is wanted now.
pub(crate) fn listen(directory: &Directory, port: Option<u16>, config: &ClusterConfig) -> Result<Taken, StartError> {
    let remembered = directory.address();
    let take = |choice: Choice| {
        let taken = Taken::take(choice, directory, port)?;
        let written = write_private(&remembered, format!("{choice}\n").as_bytes());
        written.map(|()| taken).map_err(|source| StartError::file(&remembered, source))
    };
    if let Some(before) = read(&remembered)? {
        let choice = Choice { isolation: config.isolation.unwrap_or(before.isolation), ..before };
        let is_possible = choice.isolation.has_networks() == choice.range.has_networks();
        if !is_possible || config.network.is_some_and(|wanted| wanted != choice.range) {
            return Err(StartError::OtherRange { dir: directory.path().to_owned(), range: choice.range });
        }
        return take(choice);
    }
    let isolation = config.isolation.unwrap_or_default();
    if let Some(range) = config.network {
        return take(Choice { range, isolation });
    }
    let mut hasher = DefaultHasher::new();
    directory.path().hash(&mut hasher);
    for range in ClusterRange::candidates(isolation, hasher.finish()) {
        match take(Choice { range, isolation }) {
            Err(StartError::PortInUse { .. } | StartError::Network(NetworkError::Overlap { .. })) => {}
            outcome => return outcome,
        }
    }
    Err(StartError::NoRange { port: port.unwrap_or_default() })
}

/// Listens on `address`.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => StartError::PortInUse { address },
        _ => StartError::Listen { address, source },
    })
}

fn read(path: &Path) -> Result<Option<Choice>, StartError> {
    let text = match fs::read_to_string(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|source| StartError::file(path, source))?,
    };
    text.trim().parse().map(Some).map_err(|_| {
        let source = io::Error::other("it does not hold a range such as 127.64.0.0/16; remove it to choose a new one");
        StartError::file(path, source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn listen_at(directory: &Directory, port: u16) -> Result<Taken, StartError> {
        listen(directory, Some(port), &ClusterConfig::default())
    }

    #[test]
    fn every_range_is_tried_once() {
        let tried: Vec<[u8; 2]> = ClusterRange::candidates(Isolation::Sandbox, u64::MAX).map(|range| range.0).collect();
        assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), 63);
        assert!(tried.iter().all(|[first, second]| *first == 127 && (FIRST..=LAST).contains(second)));
    }

    #[test]
    fn a_range_is_read_as_it_is_written() {
        for text in ["127.64.0.0/16", "10.7.0.0/16", "172.20.0.0/16", "10.7.0.0/16 runc"] {
            assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
        }
        for text in ["127.1.0.0/16", "8.8.0.0/16", "10.0.0.0/8", "10.7.1.0/16", ""] {
            assert!(text.parse::<ClusterRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_directory_keeps_its_range() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        let taken = listen_at(&directory, 0).unwrap();
        let port = taken.listener.as_ref().unwrap().local_addr().unwrap().port();
        assert!(matches!(listen_at(&directory, port), Err(StartError::PortInUse { .. })));
        drop(taken.listener);
        assert_eq!(listen_at(&directory, port).unwrap().range, taken.range);
        let other = ClusterConfig { isolation: Some(Isolation::Namespaces), ..ClusterConfig::default() };
        let refused = listen(&directory, Some(port), &other).err().unwrap().to_string();
        assert!(refused.contains("--isolation sandbox"), "{refused}");
    }

    #[test]
    fn a_new_directory_avoids_a_range_in_use() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        let taken = listen_at(&directory, 0).unwrap();
        let port = taken.listener.as_ref().unwrap().local_addr().unwrap().port();
        fs::remove_file(directory.address()).unwrap();
        assert_ne!(listen_at(&directory, port).unwrap().range, taken.range);
    }

    #[test]
    fn a_damaged_choice_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        fs::write(directory.address(), "10.0.0.0/8").unwrap();
        let error = listen_at(&directory, 0).err().unwrap();
        assert!(error.to_string().contains("remove it to choose a new one"), "{error}");
    }
}
