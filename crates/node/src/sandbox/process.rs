//! The last steps of a container's program before it is itself: session, user, rights, filter, exec.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use rustix::pty::OpenptFlags;

use super::filter::{Asks, Filter};
use super::identity::Mapping;
use super::spec::{Input, Process};
use super::wire::{self, Lines};
use crate::cgroup::PROCESSES_MAX;
use crate::sys;

const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The last number that a capability can have.
const CAPABILITY_MAX: u32 = 63;

/// Exit codes that shells use for a program that cannot be run.
const EXIT_CANNOT_RUN: i32 = 126;
const EXIT_NOT_FOUND: i32 = 127;

/// Where the standard input of a program comes from.
#[derive(Debug)]
pub(crate) enum Standard {
    Nothing,
    /// The end of a pipe.
    Pipe(OwnedFd),
    /// The socket to the node, which gets the other side of the terminal.
    Terminal(UnixStream),
}

impl Standard {
    /// What `input` asks for, with the descriptor that came along with it.
    pub(crate) fn of(input: Input, control: &mut Lines) -> io::Result<Self> {
        let mut descriptor = || control.take_descriptor().ok_or_else(|| io::Error::other("no descriptor came along"));
        Ok(match input {
            Input::Nothing => Self::Nothing,
            Input::Pipe => Self::Pipe(descriptor()?),
            Input::Terminal => Self::Terminal(descriptor()?.into()),
        })
    }

    /// Makes it the standard input of this process, and a terminal its output and its terminal as well.
    fn take(self) -> io::Result<()> {
        match self {
            Self::Nothing => {
                let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                sys::become_standard(&null, 0)
            }
            Self::Pipe(pipe) => sys::become_standard(&pipe, 0),
            Self::Terminal(node) => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let ours = rustix::pty::openpt(flags)?;
                rustix::pty::unlockpt(&ours)?;
                let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags)?;
                rustix::process::ioctl_tiocsctty(&theirs)?;
                for number in 0..3 {
                    sys::become_standard(&theirs, number)?;
                }
                wire::send(&node, b"T", ours.as_fd()).map(drop)
            }
        }
    }
}

/// How a program gets on with the rest of the machine.
#[derive(Debug)]
pub(crate) struct Terms {
    /// What it asks about.
    pub(crate) asks: Asks,
    pub(crate) mapping: Mapping,
    pub(crate) standard: Standard,
    /// By how much it gives way to others.
    pub(crate) nice: u8,
}

/// Becomes the program; reports the failed step on `channel` and exits if it cannot.
pub(crate) fn become_program(process: &Process, terms: Terms, channel: &UnixStream) -> ! {
    if let Err((step, error)) = prepare(process, terms, channel) {
        wire::send_failure(channel, &format!("{step}: {error}"));
        sys::exit_now(EXIT_CANNOT_RUN);
    }
    let error = run(process);
    let name = process.argv.first().map_or("", String::as_str);
    let missing = error.kind() == io::ErrorKind::NotFound;
    let why = match missing && !name.contains('/') {
        true => format!("exec: {name:?}: executable file not found in $PATH"),
        false => format!("exec {name:?}: {error}"),
    };
    wire::send_failure(channel, &why);
    sys::exit_now(if missing { EXIT_NOT_FOUND } else { EXIT_CANNOT_RUN });
}

fn prepare(process: &Process, terms: Terms, channel: &UnixStream) -> Result<(), (&'static str, io::Error)> {
    let Terms { asks, mapping, standard, nice } = terms;
    let _ = rustix::process::setsid();
    give_way(nice);
    rustix::process::umask(Mode::from_raw_mode(0o022));
    limit_processes();
    sys::cloexec_from(3);
    enter_directory(&process.workdir).map_err(|e| ("enter the working directory", e))?;
    // All hold inside the user namespace only.
    let kept: Vec<u32> = process.rights.capabilities.iter().map(|capability| capability.number()).collect();
    for capability in (0..=CAPABILITY_MAX).filter(|number| !kept.contains(number)) {
        sys::drop_bounding(capability);
    }
    if mapping == Mapping::Full {
        let user = &process.user;
        sys::become_user(user.uid, user.gid, &user.groups).map_err(|e| ("change the user", e))?;
    }
    // A terminal belongs to the user who opens it.
    standard.take().map_err(|e| ("set standard input", e))?;
    rustix::thread::set_no_new_privs(true).map_err(|e| ("set no_new_privs", e.into()))?;
    install(Filter { asks, pretend_identity: mapping == Mapping::Single }, channel)
        .map_err(|e| ("confine its sockets", e))?;
    sys::default_signals();
    Ok(())
}

/// Installs the filter. Where the kernel gives no listener (an outer supervisor has it) the rest still applies.
fn install(filter: Filter, channel: &UnixStream) -> io::Result<()> {
    let Some(program) = filter.program() else { return Ok(()) };
    if filter.asks == Asks::Nothing {
        return sys::install_filter(&program, 0).map(drop);
    }
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Signals must not restart a call that is being carried out; kernels before 5.19 cannot promise it.
    let installed = sys::install_filter(&program, listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_| sys::install_filter(&program, listener));
    match installed {
        Ok(Some(listener)) => wire::send_listener(channel, listener),
        Ok(None) => Ok(()),
        Err(_) => install(Filter { asks: Asks::Nothing, ..filter }, channel),
    }
}

/// Bounds a program that starts itself again and again, before the node sees it. Kernels before 5.14 count all processes
/// of the user; root is not bound by it.
fn limit_processes() {
    let hard = rustix::process::getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX).min(PROCESSES_MAX);
    let limit = Rlimit { current: Some(hard), maximum: Some(hard) };
    // Without the limit the node still looks.
    let _ = rustix::process::setrlimit(Resource::Nproc, limit);
}

/// Lowers the priority of the program, and that of its session, which is what counts where the kernel shares the processors
/// between sessions first.
fn give_way(nice: u8) {
    if nice > 0 {
        // A priority is a courtesy: without it the program runs as well.
        let _ = rustix::process::nice(i32::from(nice));
        let _ = std::fs::write("/proc/self/autogroup", nice.to_string());
    }
}

fn enter_directory(workdir: &Path) -> io::Result<()> {
    if rustix::process::chdir(workdir).is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(workdir)?;
    Ok(rustix::process::chdir(workdir)?)
}

/// Executes the program, looked up in the `PATH` of its own environment; returns why it could not.
fn run(process: &Process) -> io::Error {
    let strings = |items: Vec<String>| -> Result<Vec<CString>, io::Error> {
        items.into_iter().map(|item| CString::new(item).map_err(io::Error::from)).collect()
    };
    let env = process.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (argv, env) = match (strings(process.argv.clone()), strings(env)) {
        (Ok(argv), Ok(env)) => (argv, env),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let Some(name) = process.argv.first() else { return io::Error::other("no command was given") };
    if name.contains('/') {
        return sys::exec(&argv[0], &argv, &env);
    }
    let path = process.env.iter().find(|(key, _)| key == "PATH").map_or(PATH_DEFAULT, |(_, value)| value);
    let mut failure = io::Error::from_raw_os_error(libc::ENOENT);
    for directory in path.split(':') {
        let Ok(candidate) = CString::new(format!("{directory}/{name}")) else { continue };
        let error = sys::exec(&candidate, &argv, &env);
        if error.kind() != io::ErrorKind::NotFound && error.kind() != io::ErrorKind::NotADirectory {
            failure = error;
        }
    }
    failure
}
