//! Containers that outlived the node that started them: how the next one finds them, and how they are ended.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::handle::{Life, Output, Running};
use super::link;
use super::spec::{Attachment, PROTOCOL, Report, Request};

/// How long a supervisor may take to say who it is.
const GREETING_LIMIT: Duration = Duration::from_secs(5);
/// How long a container may take to be gone after it was ended.
const END_LIMIT: Duration = Duration::from_secs(5);
const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// Makes the pipes of a container that can outlive the node, in its directory, and opens them.
pub(super) fn make_output(directory: &Path) -> io::Result<(Output, Output)> {
    fs::create_dir_all(directory)?;
    for name in STREAMS {
        let path = directory.join(name);
        let _ = fs::remove_file(&path);
        // Programs open their standard output again by name, as whoever they are; the directory is private.
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)?;
        rustix::fs::chmod(&path, mode)?;
    }
    open_output(directory)
}

fn open_output(directory: &Path) -> io::Result<(Output, Output)> {
    let open = |name: &str| -> io::Result<Output> {
        Ok(Box::new(pipe::OpenOptions::new().open_receiver(directory.join(name))?))
    };
    let [stdout, stderr] = STREAMS;
    Ok((open(stdout)?, open(stderr)?))
}

/// The ends of the pipes that a supervisor keeps, so that its program can write while there is no node; and those that
/// the program gets.
pub(super) struct Pipes {
    kept: [OwnedFd; 2],
    given: [OwnedFd; 2],
}

impl Pipes {
    /// Opens the pipes in `directory`.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let open =
            |name: &str, flags: OFlags| rustix::fs::open(directory.join(name), flags | OFlags::CLOEXEC, Mode::empty());
        let [stdout, stderr] = STREAMS;
        let kept = [open(stdout, OFlags::RDONLY | OFlags::NONBLOCK)?, open(stderr, OFlags::RDONLY | OFlags::NONBLOCK)?];
        Ok(Self { kept, given: [open(stdout, OFlags::WRONLY)?, open(stderr, OFlags::WRONLY)?] })
    }

    /// Makes the program's ends the standard output of this process.
    pub(super) fn give(&self) -> io::Result<()> {
        crate::sys::become_standard(&self.given[0], 1)?;
        crate::sys::become_standard(&self.given[1], 2)
    }

    /// Lets go of the program's ends: only then do readers see its end.
    pub(super) fn keep(self) -> io::Result<[OwnedFd; 2]> {
        let null = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        crate::sys::become_standard(&null, 1)?;
        crate::sys::become_standard(&null, 2)?;
        Ok(self.kept)
    }
}

/// Finds the container in `directory` again.
///
/// # Errors
/// If none lives there, or one that speaks otherwise; that one is ended.
pub async fn attach(directory: &Path) -> io::Result<(Running, Attachment)> {
    // Before anything is asked: what a program wrote last must not go with its supervisor.
    let output = open_output(directory)?;
    for name in STREAMS {
        // Without a writer after it opened a pipe, a reader would never hear that none is left.
        drop(pipe::OpenOptions::new().open_sender(directory.join(name))?);
    }
    let stream = link::at(directory, link::SOCKET, |path| StdUnixStream::connect(path))?;
    let supervisor = supervisor_of(&stream)?;
    let pid = supervisor.1;
    stream.set_nonblocking(true)?;
    let (reports, requests) = UnixStream::from_std(stream)?.into_split();
    let life = Life::Adopted(crate::sys::watched(supervisor.0)?);
    let mut running =
        Running { life, pid, reports: BufReader::new(reports), requests, output: Some(output), kept: None };
    match tokio::time::timeout(GREETING_LIMIT, running.next_report()).await {
        Ok(Report::Attached(attachment)) if attachment.protocol == PROTOCOL => Ok((running, *attachment)),
        // Dropping it ends it.
        _ => Err(io::Error::other("it does not say what it is")),
    }
}

/// Ends every container that still lives below the directory of a Pod; how many those were.
pub fn end_below(pod: &Path) -> usize {
    let ended = runs(pod).into_iter().filter(|directory| {
        let connected = link::at(directory, link::SOCKET, |path| StdUnixStream::connect(path));
        connected.is_ok_and(|stream| end(stream).is_ok())
    });
    ended.count()
}

/// Ends a container. Its supervisor goes when all of it has ended, or is made to.
fn end(mut stream: StdUnixStream) -> io::Result<()> {
    let (supervisor, _) = supervisor_of(&stream)?;
    let mut line = serde_json::to_vec(&Request::Kill)?;
    line.push(b'\n');
    let asked = stream.write_all(&line);
    let mut gone = [PollFd::new(&supervisor, PollFlags::IN)];
    let limit = Timespec::try_from(END_LIMIT).ok();
    if asked.is_err() || rustix::event::poll(&mut gone, limit.as_ref()) != Ok(1) {
        rustix::process::pidfd_send_signal(&supervisor, Signal::KILL)?;
    }
    Ok(())
}

/// The directories of all runs of all containers of a Pod.
fn runs(pod: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    below(pod.join("containers")).flat_map(below).collect()
}

/// The process at the other end, held so that its number cannot come to mean another one.
fn supervisor_of(stream: &StdUnixStream) -> io::Result<(OwnedFd, i32)> {
    let pid: Pid = rustix::net::sockopt::socket_peercred(stream.as_fd())?.pid;
    Ok((rustix::process::pidfd_open(pid, PidfdFlags::empty())?, pid.as_raw_nonzero().get()))
}
