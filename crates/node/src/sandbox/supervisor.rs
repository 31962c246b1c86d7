//! The supervisor of one container, outside of it: maps its users, answers its socket calls, reports its end.
//!
//! It lives as long as the container, whose first process asks the kernel to die with it. When the node's socket closes
//! it ends the container, at once or when no other node has come within the time that it was told to wait.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::confine::Confinement;
use super::contained;
use super::fault::Faults;
use super::harm::Harm;
use super::identity::{self, Mapping};
use super::init;
use super::link::Link;
use super::namespace;
use super::process::Standard;
use super::processes;
use super::spec::{Attachment, ContainerSpec, PROTOCOL, Report, Request};
use super::survivor::Pipes;
use super::wire::{self, Lines, Next, Setup};
use crate::remains::Claim;
use crate::sys::{self, Forked};

const NAMESPACES: i32 = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
/// What a container has besides, unless it shares that of another.
const PROCESS_NAMESPACES: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWPID;
/// Notices about one container; a program that retries a refused port forever is reported only so often.
const NOTICES_MAX: usize = 16;

/// Runs the container that the node describes on `control`, to its end.
pub(crate) fn run(mut control: Lines) -> io::Result<()> {
    let spec: ContainerSpec = super::first_message(&mut control)?;
    let standard = Standard::of(spec.input, &mut control)?;
    let prepared = match &spec.keep {
        Some(_) => Pipes::open(&spec.scratch).and_then(|pipes| pipes.give().map(|()| Some(pipes))),
        None => Ok(None),
    };
    let pipes = match prepared {
        Ok(pipes) => pipes,
        Err(error) => return control.send(&Report::Failed(format!("open the pipes of its output: {error}"))),
    };
    let network = spec.network.as_deref();
    if let Err(error) = network.map_or(Ok(()), |path| namespace::enter_network(path, &spec.network_settings())) {
        return control.send(&Report::Failed(format!("enter the network of its Pod: {error}")));
    }
    let begun = match &spec.contained {
        Some(contained) => contained::begin(&spec, contained, standard).map(|child| (child, None)),
        None => begin(&spec, standard).map(|(child, setup)| (child, Some(setup))),
    };
    let (child, setup) = match begun {
        Ok(begun) => begun,
        Err(why) => return control.send(&Report::Failed(why)),
    };
    let _output = pipes.map(Pipes::keep).transpose()?;
    let link = match &spec.keep {
        Some(keep) => Link::first(control, &spec.scratch, keep.limit)?,
        None => Link::only(control),
    };
    let (address, faults) = (spec.address, spec.faults.clone());
    // Not before the container was started, which would share it.
    let claim = Claim::of_run(&spec.scratch);
    let supervisor = Supervisor::new(link, child, setup, address).suffering(faults);
    Supervisor { spec: Some(spec), claim, ..supervisor }.run()
}

/// Begins a container that Windlass runs by itself: its first process, and the channel on which that tells how it gets on.
fn begin(spec: &ContainerSpec, standard: Standard) -> Result<(Forked, UnixStream), String> {
    let shared = spec.neighbour.map(|neighbour| namespace::join(neighbour, namespace::PROCESSES)).transpose();
    let shared = shared.map_err(|error| format!("enter the target container: {error}"))?;
    let namespaces = if shared.is_some() { NAMESPACES } else { NAMESPACES | PROCESS_NAMESPACES };
    let failed = |error: io::Error| format!("create namespaces: {error}");
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let child = match sys::fork_into(namespaces).map_err(failed)? {
        Some(child) => child,
        None => {
            drop(ours);
            init::run(spec, standard, theirs)
        }
    };
    let entered = spec.group.iter().try_for_each(|group| group.door()?.let_in(child.pid));
    entered.map_err(|error| format!("enter its control group: {error}"))?;
    let wanted = Mapping::wanted(&spec.root, &spec.process.user);
    let mapped = shared.map_or_else(|| identity::map(child.pid, &spec.process.user, wanted), Ok);
    let told = mapped.and_then(|mapping| (&ours).write_all(&[mapping.to_byte()]));
    told.map_err(|error| format!("map users: {error}"))?;
    Ok((child, ours))
}

/// The event loop of a supervisor, also used for programs run in an existing container.
pub(crate) struct Supervisor {
    link: Link,
    child: Forked,
    /// Open until the program runs.
    setup: Option<UnixStream>,
    address: Option<std::net::Ipv4Addr>,
    confinement: Option<Confinement>,
    notices: Vec<String>,
    failed: bool,
    /// The container, for a node that did not start it.
    spec: Option<ContainerSpec>,
    started: Option<SystemTime>,
    ended: Option<i32>,
    /// What the node has outside of its directory, which is in use as long as the container is.
    claim: Option<Claim>,
    harm: Harm,
    /// What the container is to suffer from the start of its program on.
    due: Option<Faults>,
}

impl Supervisor {
    pub(crate) fn new(
        link: Link,
        child: Forked,
        setup: Option<UnixStream>,
        address: Option<std::net::Ipv4Addr>,
    ) -> Self {
        Self {
            link,
            child,
            setup,
            address,
            confinement: None,
            notices: Vec::new(),
            failed: false,
            spec: None,
            started: None,
            ended: None,
            claim: None,
            harm: Harm::default(),
            due: None,
        }
    }

    /// Lets the program suffer this from its start on.
    pub(crate) fn suffering(mut self, faults: Faults) -> Self {
        self.due = (!faults.is_nothing()).then_some(faults);
        self
    }

    /// Serves until the child has ended and was reported.
    pub(crate) fn run(mut self) -> io::Result<()> {
        if self.setup.is_none() {
            self.begin()?;
        }
        loop {
            self.turn()?;
            let Some(code) = self.ended else { continue };
            if self.failed {
                return Ok(());
            }
            if self.link.lines().is_some() {
                self.link.send(&Report::Exited(code))?;
                // Otherwise the word was lost with the node, and is for the next one.
                if self.link.lines().is_some() {
                    return Ok(());
                }
            }
        }
    }

    fn turn(&mut self) -> io::Result<()> {
        let ready = self.poll()?;
        let forgotten = self.link.patience() == Some(Duration::ZERO) && !ready.door;
        // One that talks nonsense is gone, too.
        let lost = ready.control && !self.take_requests().unwrap_or(false) && !self.link.lose();
        if forgotten || lost {
            // The container's first process ends with this one.
            self.kill();
            self.leave_nothing();
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.harm.is_over() || (self.link.lines().is_none() && !self.harm.faults().is_nothing()) {
            // Nobody is told: whoever ordered it knows the time, or is gone.
            let _ = self.suffer(Faults::default());
        }
        self.sweep();
        if ready.door && self.link.accept() {
            self.introduce()?;
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
        if ready.child {
            self.reap()?;
        }
        Ok(())
    }

    /// Learns how the child ended.
    fn reap(&mut self) -> io::Result<()> {
        while let Some((pid, code)) = sys::reap() {
            if pid == self.child.pid {
                self.ended = Some(code);
            }
        }
        // Setup words that arrived together with the end still count.
        while self.setup.is_some() {
            self.continue_setup()?;
        }
        Ok(())
    }

    /// Says to a node what this is, once it is something.
    fn introduce(&mut self) -> io::Result<()> {
        let (Some(spec), Some(started)) = (&self.spec, self.started) else { return Ok(()) };
        let (init, spec) = (self.child.pid, spec.clone());
        let attachment = Attachment { protocol: PROTOCOL, init, started, spec, takes_faults: true };
        self.link.send(&Report::Attached(Box::new(attachment)))
    }

    fn poll(&self) -> io::Result<Ready> {
        let child = Some(self.child.pidfd.as_fd()).filter(|_| self.ended.is_none());
        let sources = [self.link.words(), self.link.door(), child, self.setup.as_ref().map(AsFd::as_fd)];
        let mut fds: Vec<PollFd<'_>> =
            sources.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let confined = fds.len();
        fds.extend(self.confinement.iter().flat_map(Confinement::poll_fds));
        loop {
            let waits = [self.link.patience(), self.harm.wait(), self.confinement.as_ref().and_then(Confinement::wait)];
            let patience = waits.into_iter().flatten().min().and_then(|patience| Timespec::try_from(patience).ok());
            match rustix::event::poll(&mut fds, patience.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => break,
            }
        }
        let mut events = fds.iter().map(PollFd::revents);
        let mut is_ready =
            |source: Option<BorrowedFd<'_>>| source.is_some() && events.next().is_some_and(|e| !e.is_empty());
        let [control, door, child, setup] = sources.map(&mut is_ready);
        let confinement = fds[confined..].iter().map(PollFd::revents).collect();
        Ok(Ready { control, door, child, setup, confinement })
    }

    fn take_requests(&mut self) -> io::Result<bool> {
        let Some(lines) = self.link.lines() else { return Ok(true) };
        let mut next = lines.read()?;
        loop {
            match next {
                Next::Message(Request::Signal(number)) => self.signal(number),
                Next::Message(Request::Kill) => self.kill(),
                Next::Message(Request::Faults(faults)) => {
                    let number = faults.number;
                    let problem = self.suffer(*faults).err();
                    self.link.send(&Report::Suffers { number, problem })?;
                }
                Next::Wait => return Ok(true),
                Next::End => return Ok(false),
            }
            let Some(lines) = self.link.lines() else { return Ok(true) };
            next = lines.buffered()?.map_or(Next::Wait, Next::Message);
        }
    }

    fn continue_setup(&mut self) -> io::Result<()> {
        let Some(channel) = &self.setup else { return Ok(()) };
        match wire::receive_setup(channel) {
            Ok(Setup::Listener(listener)) => self.confine(listener),
            Ok(Setup::Failed(text)) => {
                self.failed = true;
                self.link.send(&Report::Failed(text))?;
            }
            Ok(Setup::Complete) | Err(_) => {
                self.setup = None;
                if !self.failed {
                    self.begin()?;
                }
            }
        }
        Ok(())
    }

    /// The program runs.
    fn begin(&mut self) -> io::Result<()> {
        self.started = Some(SystemTime::now());
        // Where nothing is asked about, the rest is suffered from here on.
        if let Some(faults) = self.due.take() {
            let _ = self.suffer(faults);
        }
        if self.link.is_first() {
            return self.link.send(&Report::Started { init: self.child.pid });
        }
        self.introduce()
    }

    fn confine(&mut self, listener: OwnedFd) {
        self.confinement = self.address.map(|address| Confinement::new(listener, address));
        // Before the program is there: none of its calls gets by.
        if let Some(faults) = self.due.take() {
            let _ = self.suffer(faults);
        }
    }

    /// Lets the container suffer this and nothing else.
    fn suffer(&mut self, faults: Faults) -> Result<(), String> {
        let (init, is_container) = (self.child.pid, self.spec.is_some());
        let confined = match &mut self.confinement {
            Some(confinement) => {
                confinement.spoil(faults.disk.clone());
                let cut = confinement.cut(faults.cut.as_ref(), || processes::of(init, is_container));
                cut.map_err(|error| format!("cut its sockets off: {error}"))
            }
            None if faults.cut.is_some() || faults.disk.is_some() => Err("its calls are not asked about".to_owned()),
            None => Ok(()),
        };
        let is_program = self.spec.as_ref().is_some_and(|spec| spec.contained.is_some());
        let harmed = self.harm.take(faults, || processes::of(init, is_container), (init, is_program));
        confined.and(harmed)
    }

    /// Lets new processes and sockets suffer, too.
    fn sweep(&mut self) {
        if self.ended.is_some() || !self.harm.is_due() {
            return;
        }
        let found = processes::of(self.child.pid, self.spec.is_some());
        // A process that was not reached is tried again.
        let _ = self.harm.repeat(&found);
        if let Some(confinement) = &mut self.confinement {
            confinement.sweep(&found);
        }
    }

    fn report_notices(&mut self, notices: Vec<String>) -> io::Result<()> {
        for notice in notices {
            if self.notices.len() < NOTICES_MAX && !self.notices.contains(&notice) {
                self.link.send(&Report::Notice(notice.clone()))?;
                self.notices.push(notice);
            }
        }
        Ok(())
    }

    fn kill(&self) {
        self.signal(libc::SIGKILL);
        // A program in a container of others takes with it what it started in its own session; a container takes all.
        if self.spec.is_none() && self.ended.is_none() {
            sys::signal(-self.child.pid, libc::SIGKILL);
        }
    }

    /// Nobody is there to clear up: what the container has outside of its directory goes with it.
    fn leave_nothing(&mut self) {
        if let Some(group) = self.spec.as_ref().and_then(|spec| spec.group.as_ref()) {
            group.remove();
        }
        if let Some(claim) = self.claim.take() {
            claim.release();
        }
    }

    /// Once the child has ended its number may be another's.
    fn signal(&self, number: i32) {
        if self.ended.is_none() {
            sys::signal(self.child.pid, number);
        }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "one per descriptor")]
struct Ready {
    control: bool,
    door: bool,
    child: bool,
    setup: bool,
    confinement: Vec<PollFlags>,
}
