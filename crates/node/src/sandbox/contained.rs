//! Containers that runc runs: how their supervisor begins them, and further programs in them.
//!
//! runc leaves once a process is started; its supervisor is told by the kernel to take in what has lost its parent, and so is
//! the parent of the process, which ends with it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::link;
use super::process::Standard;
use super::root;
use super::spec::{ContainerSpec, ExecSpec, Mount, Source};
use super::wire;
use crate::runc::{Config, Contained, MountPoint, Program};
use crate::sys::{self, Forked};

/// The files of a call of runc, in a directory of its own.
const CONFIG: &str = "config.json";
const PROCESS: &str = "process.json";
const LOG: &str = "runc.log";
const ID: &str = "pid";
const CONSOLE: &str = "console";
/// What runc says before the reason of a failure.
const PREAMBLE: &str = "unable to start container process: ";

/// Begins a container; its first process, or why there is none.
pub(super) fn begin(spec: &ContainerSpec, contained: &Contained, standard: Standard) -> Result<Forked, String> {
    let place = prepare(spec)?;
    let call = Call { contained, place: &place };
    let child = call.begin(&["create", "--bundle", "."], standard)?;
    let started = call.run(call.command().arg("start").arg(&contained.id));
    if started.is_err() {
        sys::signal(child.pid, libc::SIGKILL);
    }
    started.map(|()| child)
}

/// Begins a further program in a container; its process, or why there is none.
pub(super) fn exec(spec: &ExecSpec, contained: &Contained, standard: Standard) -> Result<Forked, String> {
    let place = contained.runc.scratch().map_err(|error| format!("make a directory: {error}"))?;
    write(&place.path().join(PROCESS), &Program::of(&spec.process, spec.input))?;
    Call { contained, place: place.path() }.begin(&["exec", "--detach", "--process", PROCESS], standard)
}

/// Puts the files of a container together, where only this process and what it starts sees them, and describes it.
fn prepare(spec: &ContainerSpec) -> Result<PathBuf, String> {
    sys::leave_mounts().map_err(|error| format!("create namespaces: {error}"))?;
    let built = root::assemble(spec).map_err(|error| error.to_string())?;
    let place = spec.scratch.join("bundle");
    fs::create_dir_all(&place).map_err(|error| format!("create {}: {error}", place.display()))?;
    let mut mounts = Vec::new();
    for (index, mount) in root::by_depth(&spec.mounts).into_iter().enumerate() {
        let source = place.join(format!("mount-{index}"));
        mounts.push(stage(mount, source).map_err(|error| error.to_string())?);
    }
    write(&place.join(CONFIG), &Config::of(spec, built, mounts))?;
    Ok(place)
}

/// Puts what is to be mounted at a place of its own, where no link can lead runc elsewhere.
fn stage(mount: &Mount, place: PathBuf) -> Result<MountPoint, root::RootError> {
    if let Source::Memory(size) = mount.source {
        return Ok(MountPoint::memory(size, &mount.target));
    }
    root::stage(mount, &place)?;
    Ok(MountPoint::bind(place, &mount.target, mount.read_only))
}

fn write(path: &Path, description: &impl Serialize) -> Result<(), String> {
    let bytes = serde_json::to_vec(description).expect("descriptions are plain data");
    fs::write(path, bytes).map_err(|error| format!("write {}: {error}", path.display()))
}

/// A call of runc.
struct Call<'a> {
    contained: &'a Contained,
    place: &'a Path,
}

impl Call<'_> {
    fn command(&self) -> Command {
        let mut command = self.contained.runc.command();
        command.args(["--log", LOG, "--log-format", "json"]).current_dir(self.place).stdin(Stdio::null());
        command
    }

    /// Runs a command that starts a process; the process.
    fn begin(&self, words: &[&str], standard: Standard) -> Result<Forked, String> {
        let own = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(own)).map_err(|error| format!("take in its process: {error}"))?;
        let mut command = self.command();
        command.args(words).args(["--pid-file", ID]);
        let console = match standard {
            Standard::Nothing => None,
            Standard::Pipe(pipe) => {
                command.stdin(pipe);
                None
            }
            Standard::Terminal(node) => {
                let listener = link::at(self.place, CONSOLE, |path| UnixListener::bind(path));
                let listener = listener.map_err(|error| format!("wait for its terminal: {error}"))?;
                command.args(["--console-socket", CONSOLE]).stdout(Stdio::null()).stderr(Stdio::null());
                Some((listener, node))
            }
        };
        self.run(command.arg(&self.contained.id))?;
        let child = self.child().map_err(|error| format!("find its process: {error}"))?;
        if let Some((listener, node)) = console {
            pass_on(&listener, &node).map_err(|error| format!("hand its terminal over: {error}"))?;
        }
        watch_over(&child).map_err(|error| format!("watch over its process: {error}"))?;
        Ok(child)
    }

    fn run(&self, command: &mut Command) -> Result<(), String> {
        match command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(self.complaint().unwrap_or_else(|| format!("runc ended with {status}"))),
            Err(error) => Err(format!("run runc: {error}")),
        }
    }

    /// What runc said last.
    fn complaint(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Line {
            level: String,
            msg: String,
        }
        let log = fs::read_to_string(self.place.join(LOG)).ok()?;
        let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let said = lines.rfind(|line| line.level == "error" || line.level == "fatal")?.msg;
        Some(said.split_once(PREAMBLE).map_or(said.clone(), |(_, reason)| reason.to_owned()))
    }

    /// The process that was started, which this one is the parent of: it is there until it is waited for.
    fn child(&self) -> io::Result<Forked> {
        let text = fs::read_to_string(self.place.join(ID))?;
        let pid: i32 = text.trim().parse().map_err(io::Error::other)?;
        let named = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Forked { pid, pidfd: rustix::process::pidfd_open(named, PidfdFlags::empty())? })
    }
}

/// Hands the terminal that runc has made to the node.
fn pass_on(listener: &UnixListener, node: &std::os::unix::net::UnixStream) -> io::Result<()> {
    // runc has sent it before it ended.
    listener.set_nonblocking(true)?;
    let (stream, _) = listener.accept()?;
    let (_, terminal) = wire::receive(&stream, &mut [0; 4096])?;
    let terminal = terminal.ok_or_else(|| io::Error::other("runc sent none"))?;
    wire::send(node, b"T", terminal.as_fd()).map(drop)
}

/// Leaves a process behind that ends `child` if this one is killed.
fn watch_over(child: &Forked) -> io::Result<()> {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    match sys::fork_into(0)? {
        Some(_) => Ok(()),
        None => watch(own, &child.pidfd),
    }
}

fn watch(own: OwnedFd, child: &OwnedFd) -> ! {
    // Nothing else may be held open here: others wait for its end.
    let held = sys::become_standard(&own, 0).and_then(|()| sys::become_standard(child, 1));
    std::mem::forget(own);
    sys::close_from(2);
    let (own, child) = (io::stdin(), io::stdout());
    let mut ends = [PollFd::new(&own, PollFlags::IN), PollFd::new(&child, PollFlags::IN)];
    while held.is_ok() && matches!(rustix::event::poll(&mut ends, None), Err(rustix::io::Errno::INTR)) {}
    let _ = rustix::process::pidfd_send_signal(&child, Signal::KILL);
    sys::exit_now(0)
}
