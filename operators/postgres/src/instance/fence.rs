//! The end of every process of a server, at once: what keeps a primary that lost its lease from taking another write.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use windlass::runtime::Clock;

/// How often the guard looks.
const LOOK: Duration = Duration::from_millis(50);
/// New processes may appear while the old ones are ended.
const ROUNDS_MAX: usize = 50;
/// No writes may be taken.
const NEVER: u64 = 0;
/// It does not matter: nothing takes writes.
const ALWAYS: u64 = u64::MAX;

/// Ends every process that works in `data`, wherever it comes from. Processes of a server have it as their working directory,
/// and each has a session of its own, so that neither a group nor the first of them stands for all.
pub(crate) fn end_all(data: &Path) {
    for _ in 0..ROUNDS_MAX {
        let found = processes(data);
        if found.is_empty() {
            return;
        }
        for pid in found {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    tracing::error!(data = %data.display(), "Processes of the server do not end");
}

/// The processes that work in `data`.
pub(crate) fn processes(data: &Path) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let own = std::process::id().cast_signed();
    let works_there = |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place == data);
    let is_ended = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    };
    pids.filter(|pid| *pid != own && works_there(pid) && !is_ended(pid)).filter_map(Pid::from_raw).collect()
}

/// Ends the server when its lease is over, whatever the rest of the supervisor does: it has a thread of its own.
#[derive(Clone)]
pub(crate) struct Guard {
    /// Until when writes may be taken, in milliseconds of the clock.
    until: Arc<AtomicU64>,
    clock: Clock,
}

impl Guard {
    /// Watches over the server that works in `data`.
    pub(crate) fn watch(data: PathBuf, clock: Clock) -> Self {
        let guard = Self { until: Arc::new(AtomicU64::new(ALWAYS)), clock };
        let watching = guard.clone();
        std::thread::spawn(move || {
            loop {
                if watching.is_over() {
                    tracing::error!("The lease is over: the server is ended at once");
                    end_all(&data);
                    watching.rest();
                }
                std::thread::sleep(LOOK);
            }
        });
        guard
    }

    /// Writes may be taken until then; `None` is not at all.
    pub(crate) fn allow(&self, until: Option<Duration>) {
        let until = millis(until);
        // A server that takes no writes needs no guard.
        let _ = self.until.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| (now != ALWAYS).then_some(until));
    }

    /// A server that may take writes is about to run.
    pub(crate) fn arm(&self, until: Option<Duration>) {
        self.until.store(millis(until), Ordering::SeqCst);
    }

    /// No server that takes writes runs.
    pub(crate) fn rest(&self) {
        self.until.store(ALWAYS, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        let now = u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.until.load(Ordering::SeqCst) <= now
    }
}

fn millis(until: Option<Duration>) -> u64 {
    until.map_or(NEVER, |until| u64::try_from(until.as_millis()).unwrap_or(ALWAYS - 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn all_processes_in_the_folder_end_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let start = |place: &Path| Command::new("sleep").arg("1000").current_dir(place).spawn().unwrap();
        let (mut inside, mut outside) = (start(&place), start(&std::env::temp_dir()));
        end_all(&place);
        assert!(!inside.wait().unwrap().success());
        assert!(outside.try_wait().unwrap().is_none(), "it works elsewhere");
        outside.kill().unwrap();
        outside.wait().unwrap();
    }

    #[test]
    fn a_server_is_ended_when_its_lease_is_over_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        let guard = Guard::watch(place.clone(), clock.clone());
        let mut server = Command::new("sleep").arg("1000").current_dir(&place).spawn().unwrap();
        guard.arm(Some(Duration::from_secs(4)));
        clock.advance(Duration::from_secs(3));
        guard.allow(Some(Duration::from_secs(7)));
        clock.advance(Duration::from_secs(3));
        std::thread::sleep(LOOK * 3);
        assert!(server.try_wait().unwrap().is_none(), "it was renewed");
        clock.advance(Duration::from_secs(1));
        assert!(!server.wait().unwrap().success());
        let is_at_rest = || guard.until.load(Ordering::SeqCst) == ALWAYS;
        let deadline = std::time::Instant::now() + Duration::from_secs(90);
        while !is_at_rest() && std::time::Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        guard.allow(None);
        assert!(is_at_rest(), "there is nothing to end any more");
    }
}
