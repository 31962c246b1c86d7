//! The range of loopback addresses that one cluster owns: `127.X.0.0/16`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use crate::directory::write_private;
use crate::{Directory, StartError};

const FIRST: u8 = 64;
const LAST: u8 = 126;

/// `127.X.0.0/16`: the API server, the Services in the lower half, the Pods in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopbackRange(u8);

impl LoopbackRange {
    /// The address of the API server, which the `kubernetes` Service has, too.
    pub fn api(self) -> Ipv4Addr {
        Ipv4Addr::new(127, self.0, 0, 1)
    }

    /// The network of Services and the length of its prefix.
    pub fn services(self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(127, self.0, 0, 0), 17)
    }

    /// The network of Pods and the length of its prefix.
    pub fn pods(self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(127, self.0, 128, 0), 17)
    }

    /// Where the API server of an instance in memory listens.
    pub fn first() -> Self {
        LoopbackRange(FIRST)
    }

    fn candidates(start: u64) -> impl Iterator<Item = Self> {
        let count = LAST - FIRST + 1;
        let offset = u8::try_from(start % u64::from(count)).expect("the rest is below the count");
        (0..count).map(move |step| LoopbackRange(FIRST + (offset + step) % count))
    }
}

/// The range of a directory's cluster, and the listener of its API server.
///
/// The first start chooses a range whose port is free, beginning with one that depends on the directory alone; later
/// starts keep it, because the objects in the store carry its addresses.
///
/// # Errors
/// If the port is in use, or the choice cannot be remembered.
pub(crate) fn listen(
    directory: &Directory,
    port: Option<u16>,
) -> Result<(LoopbackRange, Option<TcpListener>), StartError> {
    let remembered = directory.address();
    let try_bind = |range: LoopbackRange| port.map(|port| bind((range.api(), port).into())).transpose();
    if let Some(range) = read(&remembered)? {
        return Ok((range, try_bind(range)?));
    }
    let mut hasher = DefaultHasher::new();
    directory.path().hash(&mut hasher);
    for range in LoopbackRange::candidates(hasher.finish()) {
        match try_bind(range) {
            Err(StartError::PortInUse { .. }) => {}
            outcome => {
                let listener = outcome?;
                let text = format!("127.{}.0.0/16\n", range.0);
                write_private(&remembered, text.as_bytes()).map_err(|source| StartError::file(&remembered, source))?;
                return Ok((range, listener));
            }
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

fn read(path: &Path) -> Result<Option<LoopbackRange>, StartError> {
    let text = match fs::read_to_string(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|source| StartError::file(path, source))?,
    };
    let range = text.trim().strip_prefix("127.").and_then(|rest| rest.strip_suffix(".0.0/16"));
    match range.and_then(|number| number.parse().ok()).filter(|number| (FIRST..=LAST).contains(number)) {
        Some(number) => Ok(Some(LoopbackRange(number))),
        None => {
            let source =
                io::Error::other("it does not hold a range such as 127.64.0.0/16; remove it to choose a new one");
            Err(StartError::file(path, source))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_range_is_tried_once() {
        let tried: Vec<u8> = LoopbackRange::candidates(u64::MAX).map(|range| range.0).collect();
        assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), 63);
        assert!(tried.iter().all(|number| (FIRST..=LAST).contains(number)));
    }

    #[test]
    fn a_directory_keeps_its_range() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        let (range, listener) = listen(&directory, Some(0)).unwrap();
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        let again = listen(&directory, Some(port));
        assert!(matches!(again, Err(StartError::PortInUse { .. })), "{again:?}");
        drop(listener);
        assert_eq!(listen(&directory, Some(port)).unwrap().0, range);
    }

    #[test]
    fn a_new_directory_avoids_a_range_in_use() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        let (range, listener) = listen(&directory, Some(0)).unwrap();
        let listener = listener.unwrap();
        fs::remove_file(directory.address()).unwrap();
        let (other, _) = listen(&directory, Some(listener.local_addr().unwrap().port())).unwrap();
        assert_ne!(range, other);
    }

    #[test]
    fn a_damaged_choice_is_named() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        fs::write(directory.address(), "10.0.0.0/8").unwrap();
        let error = listen(&directory, Some(0)).unwrap_err();
        assert!(error.to_string().contains("remove it to choose a new one"), "{error}");
    }
}
