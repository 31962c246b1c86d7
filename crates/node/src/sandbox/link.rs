//! A supervisor's link to the node: the one that it was started with and, if it outlives that, those that come later.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use super::wire::Lines;

/// The name of a supervisor's socket in the directory of its container.
pub(super) const SOCKET: &str = "control";

/// The way to the node, as long as there is one.
#[derive(Debug)]
pub(crate) struct Link {
    lines: Option<Lines>,
    waiting: Option<Waiting>,
    is_first: bool,
}

/// How a supervisor waits for the next node.
#[derive(Debug)]
struct Waiting {
    listener: UnixListener,
    limit: Duration,
    since: Option<Instant>,
}

impl Link {
    /// A link that is all there is: without the node the sandbox ends.
    pub(crate) fn only(lines: Lines) -> Self {
        Self { lines: Some(lines), waiting: None, is_first: true }
    }

    /// A link after whose end others are waited for, in `directory` and so long.
    pub(crate) fn first(lines: Lines, directory: &Path, limit: Duration) -> io::Result<Self> {
        let listener = at(directory, SOCKET, |path| {
            let _ = std::fs::remove_file(path);
            // The directory is private; the socket is so by itself as well.
            let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
            let bound = UnixListener::bind(path);
            rustix::process::umask(mask);
            bound
        })?;
        listener.set_nonblocking(true)?;
        Ok(Self { lines: Some(lines), waiting: Some(Waiting { listener, limit, since: None }), is_first: true })
    }

    /// Whether the node is, or was, the one that started this.
    pub(crate) fn is_first(&self) -> bool {
        self.is_first
    }

    /// What to poll for words of the node.
    pub(crate) fn words(&self) -> Option<BorrowedFd<'_>> {
        self.lines.as_ref().map(|lines| lines.stream().as_fd())
    }

    /// What to poll for another node.
    pub(crate) fn door(&self) -> Option<BorrowedFd<'_>> {
        self.waiting.as_ref().map(|waiting| waiting.listener.as_fd())
    }

    /// The connection, while there is one.
    pub(crate) fn lines(&mut self) -> Option<&mut Lines> {
        self.lines.as_mut()
    }

    /// How long the next node is still waited for; none while there is one.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let waiting = self.waiting.as_ref().filter(|_| self.lines.is_none())?;
        Some(waiting.limit.saturating_sub(waiting.since.map_or(Duration::ZERO, |since| since.elapsed())))
    }

    /// Tells the node something. Without one it is not told; an error means that there never will be one.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        match self.lines.as_mut().map(|lines| lines.send(message)) {
            Some(Err(error)) => self.lose().then_some(()).ok_or(error),
            _ => Ok(()),
        }
    }

    /// The node is gone; false if so is every hope.
    pub(crate) fn lose(&mut self) -> bool {
        self.lines = None;
        match &mut self.waiting {
            Some(waiting) => {
                waiting.since = Some(Instant::now());
                true
            }
            None => false,
        }
    }

    /// Takes in the next node, in place of the last; false if it is none after all.
    pub(crate) fn accept(&mut self) -> bool {
        let Some(Ok((stream, _))) = self.waiting.as_ref().map(|waiting| waiting.listener.accept()) else {
            return false;
        };
        let is_own =
            rustix::net::sockopt::socket_peercred(&stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid());
        if is_own && stream.set_nonblocking(false).is_ok() {
            self.lines = Some(Lines::new(stream));
            self.is_first = false;
        }
        is_own
    }
}

/// Calls `act` with a path to the socket `name` in `directory` that is short enough for every socket address.
pub(super) fn at<T>(directory: &Path, name: &str, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let open = rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    act(Path::new(&format!("/proc/self/fd/{number}/{name}")))
}
