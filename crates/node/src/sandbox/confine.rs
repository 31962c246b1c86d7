//! Keeps the sockets of a Pod on the Pod's address: answers the `bind`, `connect` and `sendto` calls of its programs.
//!
//! The supervisor makes the call itself on a duplicate of the socket, from its own copy of the address, so that the
//! program cannot change the address between check and use.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

use super::disk::DiskDoor;
use super::fault::{Cut, Disk};
use super::partition::Partition;
use super::verdict::{Verdict, bind_verdict, connect_verdict};
use crate::low_port;
use crate::sys::{self, Answer, Notification};

/// Connections that may be under way at once in one container; more are told to try again.
const PENDING_MAX: usize = 1024;
/// What one notification may read of the program's memory: the largest socket address.
const ADDRESS_BYTES_MAX: usize = 128;
/// What one datagram may hold.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Answers the notifications of one filter.
#[derive(Debug)]
pub(crate) struct Confinement {
    listener: OwnedFd,
    address: Ipv4Addr,
    pending: Vec<Pending>,
    /// What its programs are cut off from, while they are.
    partition: Option<Partition>,
    files: DiskDoor,
}

/// A blocking `connect` that waits for its peer.
#[derive(Debug)]
struct Pending {
    id: u64,
    socket: OwnedFd,
}

impl Confinement {
    pub(crate) fn new(listener: OwnedFd, address: Ipv4Addr) -> Self {
        Self { listener, address, pending: Vec::new(), partition: None, files: DiskDoor::default() }
    }

    /// Cuts the programs in `processes` off, or lets them go everywhere again.
    pub(crate) fn cut(&mut self, cut: Option<&Cut>, processes: impl Fn() -> Vec<i32>) -> io::Result<()> {
        match (cut, &mut self.partition) {
            (None, None) => return Ok(()),
            (None, partition) => {
                partition.take().into_iter().for_each(|partition| partition.mend(&processes()));
                return Ok(());
            }
            (Some(cut), Some(partition)) => partition.change(cut.clone()),
            (Some(cut), partition) => *partition = Some(Partition::new(cut.clone(), self.address)?),
        }
        self.sweep(&processes());
        Ok(())
    }

    /// Cuts off what was not there before.
    pub(crate) fn sweep(&mut self, processes: &[i32]) {
        if let Some(partition) = &mut self.partition {
            partition.sweep(processes);
        }
    }

    /// Sets what is wrong with the files of its programs.
    pub(crate) fn spoil(&mut self, disk: Option<Disk>) {
        self.files.set(disk, &self.listener);
    }

    /// How long nothing is to be done that nobody asks for.
    pub(crate) fn wait(&self) -> Option<std::time::Duration> {
        self.files.wait()
    }

    /// What to poll: the listener first, then the connections under way.
    pub(crate) fn poll_fds(&self) -> Vec<PollFd<'_>> {
        let listener = PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN);
        let pending = self.pending.iter().map(|p| PollFd::from_borrowed_fd(p.socket.as_fd(), PollFlags::OUT));
        std::iter::once(listener).chain(pending).collect()
    }

    /// Handles what poll reported for [`Self::poll_fds`]; returns what a person should know. `false`: no program is left.
    pub(crate) fn handle(&mut self, ready: &[PollFlags], notices: &mut Vec<String>) -> bool {
        self.files.let_go(&self.listener);
        let mut flags = ready.iter().skip(1);
        let listener = &self.listener;
        self.pending.retain(|pending| {
            let settled = flags.next().is_some_and(|flags| !flags.is_empty());
            if settled {
                finish_connect(listener.as_fd(), pending.id, pending.socket.as_fd());
            }
            !settled && sys::still_waits(listener, pending.id)
        });
        let listener_flags = ready.first().copied().unwrap_or(PollFlags::empty());
        if listener_flags.contains(PollFlags::IN)
            && let Ok(notification) = sys::receive(&self.listener)
        {
            self.decide(&notification, notices);
        }
        !listener_flags.contains(PollFlags::HUP) || listener_flags.contains(PollFlags::IN)
    }

    fn decide(&mut self, call: &Notification, notices: &mut Vec<String>) {
        if self.files.take(call, &self.listener) {
            return;
        }
        let sends = i64::from(call.number) == libc::SYS_sendto;
        let place = if sends { (call.args[4], call.args[5]) } else { (call.args[1], call.args[2]) };
        let wanted = match read_address(call.pid, place) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return sys::answer(&self.listener, call.id, Answer::Continue),
            Err(errno) => return sys::answer(&self.listener, call.id, Answer::Errno(errno)),
        };
        if sends {
            return sys::answer(&self.listener, call.id, self.send(call, wanted));
        }
        let binds = i64::from(call.number) == libc::SYS_bind;
        let verdict = if binds { bind_verdict(self.address, wanted) } else { connect_verdict(self.address, wanted) };
        let is_cut = |address: SocketAddrV4| self.partition.as_ref().is_some_and(|partition| partition.covers(address));
        let address = match verdict {
            Verdict::Use(address) => address,
            Verdict::Pass if is_cut(wanted) => wanted,
            Verdict::Pass => return sys::answer(&self.listener, call.id, Answer::Continue),
            Verdict::Refuse(errno) => return sys::answer(&self.listener, call.id, Answer::Errno(errno)),
        };
        let socket = match self.duplicate_socket(call) {
            Ok(socket) => socket,
            Err(error) => return sys::answer(&self.listener, call.id, Answer::Errno(errno_of(&error))),
        };
        let address = match &self.partition {
            Some(partition) if !binds && partition.covers(address) => partition.hole(is_datagram(&socket)),
            _ => address,
        };
        if binds {
            let result = bind(&socket, address, notices);
            sys::answer(&self.listener, call.id, Answer::Errno(result.err().map_or(0, Errno::raw_os_error)));
        } else {
            self.connect(call.id, socket, address);
        }
    }

    /// What becomes of a datagram to `wanted`: most go their way, those to the Pod itself or to a port that another stands
    /// in for are sent from here.
    fn send(&self, call: &Notification, wanted: SocketAddrV4) -> Answer {
        let length = usize::try_from(call.args[2]).unwrap_or(usize::MAX);
        let verdict = connect_verdict(self.address, wanted);
        let target = if let Verdict::Use(address) = verdict { address } else { wanted };
        if self.partition.as_ref().is_some_and(|partition| partition.covers(target)) {
            // Nobody is told that a datagram is lost.
            return Answer::Done(length);
        }
        let Verdict::Use(address) = verdict else { return Answer::Continue };
        let address = datagram_target(address);
        if address == wanted {
            return Answer::Continue;
        }
        let socket = match self.duplicate_socket(call) {
            Ok(socket) if is_datagram(&socket) => socket,
            Ok(_) => return Answer::Continue,
            Err(error) => return Answer::Errno(errno_of(&error)),
        };
        if length > DATAGRAM_BYTES_MAX {
            return Answer::Errno(libc::EMSGSIZE);
        }
        let mut bytes = vec![0; length];
        let read = match sys::read_memory(call.pid, call.args[1], &mut bytes) {
            Ok(read) => read,
            Err(error) => return Answer::Errno(errno_of(&error)),
        };
        let _ = source_address(&socket, self.address);
        match rustix::net::sendto(&socket, &bytes[..read], SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &address) {
            Ok(sent) => Answer::Done(sent),
            Err(errno) => Answer::Errno(errno.raw_os_error()),
        }
    }

    fn duplicate_socket(&self, call: &Notification) -> io::Result<OwnedFd> {
        let socket = duplicate(call.pid, call.args[0] as i32)?;
        // The id is checked after the descriptor was taken: only then is it known to be the caller's.
        if sys::still_waits(&self.listener, call.id) { Ok(socket) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn connect(&mut self, id: u64, socket: OwnedFd, address: SocketAddrV4) {
        // A socket that cannot have the Pod's address as its source works as well without.
        let _ = source_address(&socket, self.address);
        let blocking = set_nonblocking(&socket);
        // Nobody refuses a datagram, so where to send it has to be known before.
        let address = if is_datagram(&socket) { datagram_target(address) } else { address };
        let mut result = rustix::net::connect(&socket, &address);
        if let Some(port) = low_port::stand_in(address.port()) {
            if result == Err(Errno::INPROGRESS) && has_failed(&socket) {
                // The second call reports why the first failed, and makes the socket usable again.
                result = rustix::net::connect(&socket, &address);
            }
            if result == Err(Errno::CONNREFUSED) {
                result = rustix::net::connect(&socket, &SocketAddrV4::new(*address.ip(), port));
            }
        }
        if !blocking || result != Err(Errno::INPROGRESS) {
            if blocking {
                set_blocking(&socket);
            }
            return sys::answer(&self.listener, id, Answer::Errno(result.err().map_or(0, Errno::raw_os_error)));
        }
        if is_settled(&socket) {
            finish_connect(self.listener.as_fd(), id, socket.as_fd());
        } else if self.pending.len() < PENDING_MAX {
            self.pending.push(Pending { id, socket });
        } else {
            set_blocking(&socket);
            sys::answer(&self.listener, id, Answer::Errno(libc::EAGAIN));
        }
    }
}

/// Binds, or takes the port that stands in for one that needs a privilege.
fn bind(socket: &OwnedFd, address: SocketAddrV4, notices: &mut Vec<String>) -> Result<(), Errno> {
    let (errno, stand_in) = match (rustix::net::bind(socket, &address), low_port::stand_in(address.port())) {
        (Ok(()), _) => return Ok(()),
        (Err(Errno::ACCESS), Some(port)) => (Errno::ACCESS, Some(SocketAddrV4::new(*address.ip(), port))),
        (Err(errno), _) => (errno, None),
    };
    if let Some(other) = stand_in
        && rustix::net::bind(socket, &other).is_ok()
    {
        notices.push(format!(
            "{address} is served at {other}: ports below 1024 need a privilege. Pods and Services reach it at both; for \
             programs outside of Pods allow it with `sysctl net.ipv4.ip_unprivileged_port_start={}` as root",
            address.port()
        ));
        return Ok(());
    }
    notices.extend(explain_bind(address, errno));
    Err(errno)
}

pub(super) fn is_datagram(socket: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_type(socket) == Ok(SocketType::DGRAM)
}

/// Where datagrams to a loopback address go.
fn datagram_target(address: SocketAddrV4) -> SocketAddrV4 {
    match low_port::datagram_target(address.into()) {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => address,
    }
}

/// Whether a connection under way has come to its end, good or bad.
fn is_settled(socket: &OwnedFd) -> bool {
    let mut now = [PollFd::new(socket, PollFlags::OUT)];
    rustix::event::poll(&mut now, Some(&rustix::event::Timespec::default())).unwrap_or(0) > 0
}

/// Whether a connection under way has failed; on loopback a refusal is known at once.
fn has_failed(socket: &OwnedFd) -> bool {
    let mut now = [PollFd::new(socket, PollFlags::OUT)];
    let polled = rustix::event::poll(&mut now, Some(&rustix::event::Timespec::default()));
    polled.is_ok() && now[0].revents().contains(PollFlags::ERR)
}

fn finish_connect(listener: BorrowedFd<'_>, id: u64, socket: BorrowedFd<'_>) {
    let result = rustix::net::sockopt::socket_error(socket).unwrap_or_else(Err);
    set_blocking(socket);
    sys::answer(listener, id, Answer::Errno(result.err().map_or(0, Errno::raw_os_error)));
}

/// Other Pods see the Pod's address as the peer, as in a Pod network; a socket that the program bound keeps its own.
fn source_address(socket: &OwnedFd, own: Ipv4Addr) -> Result<(), Errno> {
    let local = SocketAddrV4::try_from(rustix::net::getsockname(socket)?)?;
    if local.port() != 0 || !local.ip().is_unspecified() {
        return Ok(());
    }
    sys::choose_port_at_connect(socket).map_err(|e| Errno::from_raw_os_error(errno_of(&e)))?;
    rustix::net::bind(socket, &SocketAddrV4::new(own, 0))
}

/// True if the socket was blocking before.
fn set_nonblocking(socket: impl AsFd) -> bool {
    let Ok(flags) = rustix::fs::fcntl_getfl(&socket) else { return false };
    let blocking = !flags.contains(rustix::fs::OFlags::NONBLOCK);
    blocking && rustix::fs::fcntl_setfl(&socket, flags | rustix::fs::OFlags::NONBLOCK).is_ok()
}

fn set_blocking(socket: impl AsFd) {
    if let Ok(flags) = rustix::fs::fcntl_getfl(&socket) {
        let _ = rustix::fs::fcntl_setfl(&socket, flags - rustix::fs::OFlags::NONBLOCK);
    }
}

/// The IPv4 address in the memory of a caller; `None` for other families.
fn read_address(pid: u32, (place, length): (u64, u64)) -> Result<Option<SocketAddrV4>, i32> {
    let length = usize::try_from(length as u32).unwrap_or(0).min(ADDRESS_BYTES_MAX);
    let mut buffer = [0; ADDRESS_BYTES_MAX];
    let read = sys::read_memory(pid, place, &mut buffer[..length]).map_err(|e| errno_of(&e))?;
    Ok(parse_address(&buffer[..read]))
}

/// Reads a `sockaddr_in`.
fn parse_address(bytes: &[u8]) -> Option<SocketAddrV4> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    if i32::from(family) != libc::AF_INET || bytes.len() < 16 {
        return None;
    }
    let port = u16::from_be_bytes(bytes[2..4].try_into().ok()?);
    let octets: [u8; 4] = bytes[4..8].try_into().ok()?;
    Some(SocketAddrV4::new(octets.into(), port))
}

/// Duplicates descriptor `fd` of the process that thread `thread` belongs to.
pub(super) fn duplicate(thread: u32, fd: i32) -> io::Result<OwnedFd> {
    let open = |id: i32, flags: u32| -> io::Result<OwnedFd> {
        let id = Pid::from_raw(id).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(rustix::process::pidfd_open(id, PidfdFlags::from_bits_retain(flags))?)
    };
    // PIDFD_THREAD (the value of O_EXCL) takes any thread; older kernels want the leader.
    let process = match open(thread as i32, libc::O_EXCL as u32) {
        Ok(process) => process,
        Err(_) => open(leader_of(thread)?, 0)?,
    };
    Ok(rustix::process::pidfd_getfd(&process, fd, PidfdGetfdFlags::empty())?)
}

fn leader_of(thread: u32) -> io::Result<i32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:")).map(str::trim);
    leader.and_then(|leader| leader.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn explain_bind(address: SocketAddrV4, errno: Errno) -> Option<String> {
    let port = address.port();
    match errno {
        Errno::ACCESS => Some(format!(
            "port {port} needs a privilege that this user does not have: use a port from 1024 on, or allow it for \
             everyone with `sysctl net.ipv4.ip_unprivileged_port_start={port}` as root"
        )),
        Errno::ADDRINUSE => Some(format!(
            "port {port} is in use on {}: a program of this Pod has it already, or one outside Windlass listens on \
             all addresses of this machine (`ss -ltnp 'sport = :{port}'` shows it)",
            address.ip()
        )),
        _ => None,
    }
}

fn errno_of(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddrV4 {
        address.parse().unwrap()
    }

    #[test]
    fn only_ipv4_addresses_are_read() {
        let mut inet = [0_u8; 16];
        inet[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        inet[2..8].copy_from_slice(&[0x2b, 0xcb, 127, 0, 0, 1]);
        assert_eq!(parse_address(&inet), Some(at("127.0.0.1:11211")));
        assert_eq!(parse_address(&inet[..8]), None, "too short");
        inet[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
        assert_eq!(parse_address(&inet), None);
    }
}
