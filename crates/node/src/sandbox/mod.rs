//! Sandboxed processes: what runs inside them, and the node's handle on one.
//!
//! ```text
//! node ── supervisor ── init (pid 1 of the container) ── program ── …
//!   socket    │  dies with its supervisor (PDEATHSIG), and all of the container with it (pid namespace)
//!   closed: supervisor ends the container, or waits for the next node at a socket of its own and ends it then
//! ```
//!
//! A container that runc runs has the same supervisor, and its program is the first process ([`contained`]).

mod beneath;
mod confine;
mod contained;
mod disk;
mod exec;
mod fault;
mod filter;
mod handle;
mod harm;
mod host;
mod identity;
mod init;
mod link;
mod namespace;
mod partition;
mod point;
mod probe;
mod process;
mod processes;
mod rights;
mod root;
mod skew;
mod spec;
mod supervisor;
mod survivor;
mod terminal;
mod verdict;
mod wire;

pub use fault::{Cut, Disk, Faults, Peer};
pub use handle::{Launcher, Output, Running};
pub use namespace::Neighbour;
pub use probe::Capabilities;
pub use rights::{Capability, Guard, Rights};
pub use spec::{
    Attachment, ContainerSpec, ExecSpec, Identity, Input, Keep, Mount, Origin, Process, Report, Request, Root, Source,
};
pub use survivor::{attach, end_below};
pub use terminal::{Size, Terminal, TerminalOutput};

pub(crate) use beneath::{make as make_beneath, open as open_beneath};
pub(crate) use fault::PEERS_MAX;
pub(crate) use identity::Mapping;
pub(crate) use partition::bar;
pub(crate) use point::resolve;

use std::io;
use std::os::unix::net::UnixStream;

use rustix::fd::AsFd;
use serde::de::DeserializeOwned;

use crate::sys;
use wire::{Lines, Next};

/// The first argument that makes this program a sandbox process.
const MARK: &str = "__windlass_sandbox";

/// Which sandbox process to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Container,
    Exec,
    Probe,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Exec => "exec",
            Self::Probe => "probe",
        }
    }
}

/// Turns this process into the sandbox process that it was started as; returns if it is an ordinary start.
///
/// To be called first in `main`, before any thread exists: namespaces are made for single-threaded processes.
pub fn sandbox_entry() {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(MARK) {
        return;
    }
    let role = arguments.next();
    let _ = rustix::process::setsid();
    crate::low_port::lowest();
    let done = control().and_then(|control| match role.as_deref() {
        Some("container") => supervisor::run(control),
        Some("exec") => exec::run(control),
        Some("probe") => probe::run(control),
        _ => Err(io::Error::other("this argument is for internal use")),
    });
    sys::exit_now(i32::from(done.is_err()));
}

/// The node's socket is this process's standard input.
fn control() -> io::Result<Lines> {
    let stream = std::io::stdin().as_fd().try_clone_to_owned()?;
    Ok(Lines::new(UnixStream::from(stream)))
}

fn first_message<T: DeserializeOwned>(control: &mut Lines) -> io::Result<T> {
    loop {
        match control.read()? {
            Next::Message(message) => return Ok(message),
            Next::Wait => {}
            Next::End => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
