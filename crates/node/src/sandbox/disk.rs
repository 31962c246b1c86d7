//! Makes the disk of a container full or slow, by the answers to its calls that write.

use std::fs::File;
use std::io::Seek;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags};

use super::confine::duplicate;
use super::fault::Disk;
use super::filter::{FLUSHES, WRITES};
use crate::sys::{self, Answer, Notification};

/// Calls that may be held up at once; more go on as if the disk were quick.
const DELAYED_MAX: usize = 1024;

/// Answers the calls of a container that write to files.
#[derive(Debug, Default)]
pub(crate) struct DiskDoor {
    disk: Option<Disk>,
    delayed: Vec<(u64, Instant)>,
}

/// What becomes of a call, decided without I/O.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Refuse,
    After(Duration),
}

/// A write or flush, as far as it matters.
struct Call {
    path: PathBuf,
    /// Whether the file would be longer afterwards.
    grows: bool,
}

impl DiskDoor {
    /// Sets what is wrong; calls that were held up for what is over go on.
    pub(crate) fn set(&mut self, disk: Option<Disk>, listener: impl AsFd) {
        self.disk = disk;
        if self.disk.as_ref().is_none_or(|disk| disk.slow.is_empty()) {
            self.release(listener, None);
        }
    }

    /// How long no call has to be let go.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let due = self.delayed.iter().map(|(_, due)| *due).min()?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Lets calls go whose time has come.
    pub(crate) fn let_go(&mut self, listener: impl AsFd) {
        self.release(listener, Some(Instant::now()));
    }

    /// Answers a call, now or later; false if it is none that writes.
    pub(crate) fn take(&mut self, call: &Notification, listener: impl AsFd) -> bool {
        let known = WRITES.iter().chain(&FLUSHES).find(|(number, _)| *number == i64::from(call.number));
        let Some((_, argument)) = known else { return false };
        let verdict = self.disk.as_ref().and_then(|disk| {
            let found = observe(call, call.args[*argument] as i32)?;
            Some(decide(disk, &found))
        });
        match verdict.unwrap_or(Verdict::After(Duration::ZERO)) {
            Verdict::Refuse => sys::answer(listener, call.id, Answer::Errno(libc::ENOSPC)),
            Verdict::After(delay) if delay.is_zero() || self.delayed.len() >= DELAYED_MAX => {
                sys::answer(listener, call.id, Answer::Continue);
            }
            Verdict::After(delay) => self.delayed.push((call.id, Instant::now() + delay)),
        }
        true
    }

    fn release(&mut self, listener: impl AsFd, until: Option<Instant>) {
        self.delayed.retain(|(id, due)| {
            let goes = until.is_none_or(|until| *due <= until);
            if goes {
                sys::answer(&listener, *id, Answer::Continue);
            }
            !goes && sys::still_waits(&listener, *id)
        });
    }
}

fn decide(disk: &Disk, call: &Call) -> Verdict {
    if call.grows && disk.is_full(&call.path) { Verdict::Refuse } else { Verdict::After(disk.delay(&call.path)) }
}

/// What a call would do; none if its file is no file, or gone.
fn observe(call: &Notification, descriptor: i32) -> Option<Call> {
    let path = std::fs::read_link(format!("/proc/{}/fd/{descriptor}", call.pid)).ok()?;
    if !path.is_absolute() {
        return None;
    }
    let file = duplicate(call.pid, descriptor).ok()?;
    let found = rustix::fs::fstat(&file).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    let grows = end(call, file).is_some_and(|end| end > u64::try_from(found.st_size).unwrap_or(0));
    Some(Call { path: without_mark(&path).to_owned(), grows })
}

/// Where in the file a write ends, as far as can be told without its vectors: one of those ends behind its beginning.
fn end(call: &Notification, file: OwnedFd) -> Option<u64> {
    let append = rustix::fs::fcntl_getfl(&file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    if append {
        return Some(u64::MAX);
    }
    let number = i64::from(call.number);
    let (place, count) = match number {
        libc::SYS_pwrite64 => (call.args[3], call.args[2]),
        libc::SYS_pwritev | libc::SYS_pwritev2 => (call.args[3], 1),
        libc::SYS_fallocate => (call.args[2], call.args[3]),
        libc::SYS_write => (File::from(file).stream_position().ok()?, call.args[2]),
        libc::SYS_writev | libc::SYS_sendfile | libc::SYS_copy_file_range => {
            (File::from(file).stream_position().ok()?, 1)
        }
        _ => return None,
    };
    Some(place.saturating_add(count))
}

/// The kernel marks files that have no name any more.
fn without_mark(path: &Path) -> &Path {
    path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map_or(path, Path::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_full_volume_do_not_grow_and_slow_ones_take_longer() {
        let second = Duration::from_secs(1);
        let disk = Disk { full: vec!["/data".into()], slow: vec![("/data".into(), second), ("/".into(), second / 2)] };
        let check = |path: &str, grows, expect| {
            assert_eq!(decide(&disk, &Call { path: path.into(), grows }), expect, "{path}");
        };
        check("/data/file", true, Verdict::Refuse);
        check("/data/file", false, Verdict::After(second));
        check("/database/file", true, Verdict::After(second / 2));
        assert_eq!(without_mark(Path::new("/data/x (deleted)")), Path::new("/data/x"));
    }
}
