//! The supervisor of one container, outside of it: maps its users, answers its socket calls, reports its end.
//!
//! It lives exactly as long as both the node and the container: when the node's socket closes it ends the container,
//! and the container's first process asks the kernel to die with it.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags};

use super::confine::Confinement;
use super::identity::{self, Mapping};
use super::init;
use super::process::Standard;
use super::spec::{ContainerSpec, Report, Request};
use super::wire::{self, Lines, Next, Setup};
use crate::sys::{self, Forked};

const NAMESPACES: i32 =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
/// Notices about one container; a program that retries a refused port forever is reported only so often.
const NOTICES_MAX: usize = 16;

/// Runs the container that the node describes on `control`, to its end.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let spec: ContainerSpec = super::first_message(&mut control)?;
    let standard = Standard::of(spec.input, &mut control)?;
    let (ours, theirs) = UnixStream::pair()?;
    let child = match sys::fork_into(NAMESPACES) {
        Ok(Some(child)) => child,
        Ok(None) => {
            drop((control, ours));
            init::run(&spec, standard, theirs)
        }
        Err(error) => return control.send(&Report::Failed(format!("create namespaces: {error}"))),
    };
    drop((theirs, standard));
    match identity::map(child.pid, &spec.process.user, Mapping::wanted(&spec.root, &spec.process.user)) {
        Ok(mapping) => (&ours).write_all(&[mapping.to_byte()])?,
        Err(error) => return control.send(&Report::Failed(format!("map users: {error}"))),
    }
    Supervisor::new(control, child, Some(ours), spec.address).run()
}

/// The event loop of a supervisor, also used for programs run in an existing container.
pub(crate) struct Supervisor {
    control: Lines,
    child: Forked,
    /// Open until the program runs.
    setup: Option<UnixStream>,
    address: Option<std::net::Ipv4Addr>,
    confinement: Option<Confinement>,
    notices: Vec<String>,
    failed: bool,
}

enum Flow {
    Continue,
    Ended,
}

impl Supervisor {
    pub(crate) fn new(
        control: Lines,
        child: Forked,
        setup: Option<UnixStream>,
        address: Option<std::net::Ipv4Addr>,
    ) -> Self {
        Self { control, child, setup, address, confinement: None, notices: Vec::new(), failed: false }
    }

    /// Serves until the child has ended and was reported.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while let Flow::Continue = self.turn()? {}
        let code = loop {
            if let Some((pid, code)) = sys::reap()
                && pid == self.child.pid
            {
                break code;
            }
        };
        // Setup words that arrived together with the end still count.
        while self.setup.is_some() {
            self.continue_setup()?;
        }
        if !self.failed {
            self.control.send(&Report::Exited(code))?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<Flow> {
        let ready = self.poll()?;
        if ready.control {
            match self.take_requests() {
                Ok(true) => {}
                // The node is gone (or talks nonsense): so is this container, as its first process ends with this one.
                Ok(false) | Err(_) => {
                    self.kill();
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            }
        }
        if ready.setup {
            self.continue_setup()?;
        }
        if let Some(confinement) = &mut self.confinement {
            let mut notices = Vec::new();
            if !confinement.handle(&ready.confinement, &mut notices) {
                self.confinement = None;
            }
            self.report_notices(notices)?;
        }
        Ok(if ready.child { Flow::Ended } else { Flow::Continue })
    }

    fn poll(&self) -> io::Result<Ready> {
        let mut fds =
            vec![PollFd::new(self.control.stream(), PollFlags::IN), PollFd::new(&self.child.pidfd, PollFlags::IN)];
        if let Some(setup) = &self.setup {
            fds.push(PollFd::from_borrowed_fd(setup.as_fd(), PollFlags::IN));
        }
        let confined = fds.len();
        fds.extend(self.confinement.iter().flat_map(Confinement::poll_fds));
        while let Err(errno) = rustix::event::poll(&mut fds, None) {
            if errno != rustix::io::Errno::INTR {
                return Err(errno.into());
            }
        }
        let is_ready = |index: usize| !fds[index].revents().is_empty();
        Ok(Ready {
            control: is_ready(0),
            child: is_ready(1),
            setup: self.setup.is_some() && is_ready(2),
            confinement: fds[confined..].iter().map(PollFd::revents).collect(),
        })
    }

    fn take_requests(&mut self) -> io::Result<bool> {
        let mut next = self.control.read()?;
        loop {
            match next {
                Next::Message(Request::Signal(number)) => sys::signal(self.child.pid, number),
                Next::Message(Request::Kill) => self.kill(),
                Next::Wait => return Ok(true),
                Next::End => return Ok(false),
            }
            next = self.control.buffered()?.map_or(Next::Wait, Next::Message);
        }
    }

    fn continue_setup(&mut self) -> io::Result<()> {
        let Some(channel) = &self.setup else { return Ok(()) };
        match wire::receive_setup(channel) {
            Ok(Setup::Listener(listener)) => self.confine(listener),
            Ok(Setup::Failed(text)) => {
                self.failed = true;
                self.control.send(&Report::Failed(text))?;
            }
            Ok(Setup::Complete) | Err(_) => {
                self.setup = None;
                if !self.failed {
                    self.control.send(&Report::Started { init: self.child.pid })?;
                }
            }
        }
        Ok(())
    }

    fn confine(&mut self, listener: OwnedFd) {
        self.confinement = self.address.map(|address| Confinement::new(listener, address));
    }

    fn report_notices(&mut self, notices: Vec<String>) -> io::Result<()> {
        for notice in notices {
            if self.notices.len() < NOTICES_MAX && !self.notices.contains(&notice) {
                self.control.send(&Report::Notice(notice.clone()))?;
                self.notices.push(notice);
            }
        }
        Ok(())
    }

    fn kill(&self) {
        sys::signal(self.child.pid, libc::SIGKILL);
    }
}

#[expect(clippy::struct_excessive_bools, reason = "one per descriptor")]
struct Ready {
    control: bool,
    child: bool,
    setup: bool,
    confinement: Vec<PollFlags>,
}
