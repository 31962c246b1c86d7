//! Which users exist inside a container: the maps of its user namespace.

use std::fs;
use std::io;

use super::spec::{Identity, Root};
use crate::sys;

/// How the users of a container relate to those of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// Every id that this process may use is the same inside: programs can change users.
    Full,
    /// The container's one user is the one that runs Windlass.
    Single,
}

impl Mapping {
    /// The host's own files belong to users of the host: a program that is not root there must still be able to read
    /// what the one who started Windlass can read, so it is that user under another number.
    pub(crate) fn wanted(root: &Root, user: &Identity) -> Self {
        match root {
            Root::Host if user.uid != 0 => Self::Single,
            _ => Self::Full,
        }
    }

    /// The byte that tells the container's first process how it was mapped.
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::Full => b'f',
            Self::Single => b's',
        }
    }

    /// Reverses [`Self::to_byte`].
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            b'f' => Some(Self::Full),
            b's' => Some(Self::Single),
            _ => None,
        }
    }
}

/// Writes the maps of the user namespace of `pid`: all ids if they are wanted and this process has the right, else one.
pub(crate) fn map(pid: i32, user: &Identity, wanted: Mapping) -> io::Result<Mapping> {
    let (uid, gid) = sys::effective_ids();
    if wanted == Mapping::Full && uid == 0 && map_all(pid).is_ok() {
        return Ok(Mapping::Full);
    }
    // The kernel wants setgroups off before an unprivileged group map.
    fs::write(format!("/proc/{pid}/setgroups"), "deny")?;
    fs::write(format!("/proc/{pid}/uid_map"), format!("{} {uid} 1\n", user.uid))?;
    fs::write(format!("/proc/{pid}/gid_map"), format!("{} {gid} 1\n", user.gid))?;
    Ok(Mapping::Single)
}

fn map_all(pid: i32) -> io::Result<()> {
    let uids = same_inside(&fs::read_to_string("/proc/self/uid_map")?);
    let gids = same_inside(&fs::read_to_string("/proc/self/gid_map")?);
    fs::write(format!("/proc/{pid}/gid_map"), gids)?;
    fs::write(format!("/proc/{pid}/uid_map"), uids)
}

/// The map that gives every id its own number, for the ids that the map of the current namespace has.
fn same_inside(own: &str) -> String {
    let ranges = own.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (first, _outside, count) = (fields.next()?, fields.next()?, fields.next()?);
        Some(format!("{first} {first} {count}\n"))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_number() {
        assert_eq!(same_inside("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(same_inside("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
    }
}
