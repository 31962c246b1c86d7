//! Enters namespaces of a container that runs already.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags};
use rustix::thread::{LinkNameSpaceType, ThreadNameSpaceType};
use serde::{Deserialize, Serialize};

use super::identity::Mapping;

/// Users and processes, for a container that shares them with another.
pub(super) const PROCESSES: ThreadNameSpaceType = ThreadNameSpaceType::USER.union(ThreadNameSpaceType::PROCESS_ID);
/// Everything that a container has of its own.
pub(super) const ALL: ThreadNameSpaceType = PROCESSES
    .union(ThreadNameSpaceType::MOUNT)
    .union(ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION)
    .union(ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME);

/// A container that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its first process, as the host sees it.
    pub init: i32,
    /// The parent of that, the supervisor: proves that the id was not reused.
    pub supervisor: i32,
    /// Whether runc runs it.
    #[serde(default)]
    pub is_contained: bool,
}

/// Enters the network of a Pod, for which this process is not yet in a user namespace of its own.
///
/// The network belongs to the machine's users, so programs that are root in their container may not change it; and they
/// would not be allowed the low ports and the pings that root has, if those were not everybody's there.
pub(super) fn enter_network(path: &Path, settings: &[&(String, String)]) -> io::Result<()> {
    let network = fs::File::open(path)?;
    rustix::thread::move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
    // Without it programs cannot ping; nothing else depends on it.
    let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
    settings.iter().try_for_each(|(name, value)| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        fs::write(path, value).map_err(|error| io::Error::other(format!("set {name} to {value:?}: {error}")))
    })
}

/// Enters `namespaces` of a container; how its users are mapped.
pub(super) fn join(neighbour: Neighbour, namespaces: ThreadNameSpaceType) -> io::Result<Mapping> {
    let init = Pid::from_raw(neighbour.init).ok_or(io::ErrorKind::InvalidInput)?;
    let container = rustix::process::pidfd_open(init, PidfdFlags::empty())?;
    // Read after the descriptor was taken: its parent proves that it is still the same process.
    let status = fs::read_to_string(format!("/proc/{}/status", neighbour.init))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
    if parent != Some(neighbour.supervisor.to_string().as_str()) {
        return Err(io::Error::other("it has ended"));
    }
    let users = fs::read_to_string(format!("/proc/{}/uid_map", neighbour.init))?;
    let mapped: u64 = users.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok()).sum();
    rustix::thread::move_into_thread_name_spaces(container.as_fd(), namespaces)?;
    Ok(if mapped > 1 { Mapping::Full } else { Mapping::Single })
}
