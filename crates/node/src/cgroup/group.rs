//! The group of one container: what is in it, what it uses, how it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use super::limits::{Limits, Setting};
use crate::usage::Usage;

/// Where hierarchies are mounted.
const HIERARCHIES: &str = "/sys/fs/cgroup";
/// The file of a group that lists its processes and takes new ones.
const MEMBERS: &str = "cgroup.procs";
/// How often the processes of a group are ended that start new ones meanwhile.
const KILL_PASSES_MAX: usize = 50;
/// How often, and after what pauses, a group is removed whose processes have not all left.
const REMOVE_ATTEMPTS_MAX: usize = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// A generation of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// One hierarchy per controller.
    V1,
    /// One for all.
    V2,
}

/// What of a container is controlled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Controller {
    /// Its memory.
    Memory,
    /// Its share of the processors.
    Cpu,
    /// Its processor time, only counted; part of [`Self::Cpu`] in version 2.
    Accounting,
    /// Its processes and threads.
    Processes,
}

impl Controller {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::Cpu, Self::Accounting, Self::Processes];

    /// The kernel's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Accounting => "cpuacct",
            Self::Processes => "pids",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|controller| controller.name() == name)
    }
}

/// A group in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) directory: PathBuf,
    pub(super) controllers: Vec<Controller>,
}

impl Part {
    /// Writes the settings of each controller.
    pub(super) fn write(&self, settings: impl Fn(Controller) -> Vec<Setting>) -> io::Result<()> {
        self.controllers.iter().flat_map(|controller| settings(*controller)).try_for_each(|setting| {
            let file = self.directory.join(setting.file);
            match fs::write(&file, &setting.value) {
                Err(error) if setting.required => Err(about(&file, error)),
                _ => Ok(()),
            }
        })
    }

    /// Writes other settings. A limit that depends on another one may be refused until that one is written.
    pub(super) fn change(&self, settings: impl Fn(Controller) -> Vec<Setting>) -> io::Result<()> {
        for setting in self.controllers.iter().flat_map(|controller| settings(*controller)) {
            let _ = fs::write(self.directory.join(setting.file), &setting.value);
        }
        self.write(settings)
    }
}

/// The group of one container, in every hierarchy that matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    version: Version,
    parts: Vec<Part>,
}

impl Group {
    /// Makes the group, with limits, in place of what is left of an earlier one.
    ///
    /// # Errors
    /// If it cannot be made, or not with these limits; nothing is left of it then.
    pub(super) fn make(version: Version, parts: Vec<Part>, limits: &Limits) -> io::Result<Self> {
        let group = Self { version, parts };
        group.remove();
        let made = group.parts.iter().try_for_each(|part| {
            fs::create_dir(&part.directory).map_err(|error| about(&part.directory, error))?;
            part.write(|controller| limits.settings(version, controller))
        });
        if made.is_err() {
            group.remove();
        }
        made.map(|()| group)
    }

    /// Its path in every hierarchy, if that is the same in all.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let below = |part: &Part| -> Option<PathBuf> {
            let path = part.directory.strip_prefix(HIERARCHIES).ok()?;
            // The first name of version 1 is that of the hierarchy.
            let skipped = usize::from(self.version == Version::V1);
            Some(Path::new("/").join(path.components().skip(skipped).collect::<PathBuf>()))
        };
        let mut paths = self.parts.iter().map(below);
        let first = paths.next()??;
        paths.all(|path| path.as_ref() == Some(&first)).then_some(first)
    }

    /// Holds the container to other limits from now on.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
    pub(crate) fn change(&self, limits: &Limits) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.change(|controller| limits.settings(self.version, controller)))
    }

    /// Whether the kernel controls this of the container.
    pub(crate) fn has(&self, controller: Controller) -> bool {
        self.find(controller).is_some()
    }

    /// Opens the way into the group, for a process that will no longer see where it is.
    pub(crate) fn door(&self) -> io::Result<Door> {
        let open = |part: &Part| {
            let file = part.directory.join(MEMBERS);
            OpenOptions::new().write(true).open(&file).map_err(|error| about(&file, error))
        };
        Ok(Door(self.parts.iter().map(open).collect::<io::Result<_>>()?))
    }

    /// How many processes the kernel ended because the group had no more memory.
    pub(crate) fn memory_kills(&self) -> u64 {
        let Some(directory) = self.find(Controller::Memory) else { return 0 };
        let file = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        fs::read_to_string(directory.join(file)).ok().and_then(|text| field(&text, "oom_kill")).unwrap_or(0)
    }

    /// What the container uses, if the kernel counts all of it.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let members = fs::read_to_string(self.parts.first()?.directory.join(MEMBERS)).ok()?;
        Some(Usage { memory: self.memory()?, cpu: self.processor_time()?, processes: members.lines().count() })
    }

    /// Memory without the files that the kernel drops first, which is what Kubernetes calls the working set.
    fn memory(&self) -> Option<u64> {
        let directory = self.find(Controller::Memory)?;
        let (file, inactive) = match self.version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        let used: u64 = fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()?;
        let counted = fs::read_to_string(directory.join("memory.stat")).ok()?;
        Some(used.saturating_sub(field(&counted, inactive).unwrap_or(0)))
    }

    fn processor_time(&self) -> Option<Duration> {
        match self.version {
            Version::V1 => {
                let file = self.find(Controller::Accounting)?.join("cpuacct.usage");
                Some(Duration::from_nanos(fs::read_to_string(file).ok()?.trim().parse().ok()?))
            }
            Version::V2 => {
                let counted = fs::read_to_string(self.parts.first()?.directory.join("cpu.stat")).ok()?;
                field(&counted, "usage_usec").map(Duration::from_micros)
            }
        }
    }

    /// Ends every process of the group and removes it; false if something of it is left.
    pub(crate) fn remove(&self) -> bool {
        // Every part has to be tried.
        self.parts.iter().map(|part| remove(&part.directory)).fold(true, |all, gone| all & gone)
    }

    fn find(&self, controller: Controller) -> Option<&Path> {
        let part = self.parts.iter().find(|part| part.controllers.contains(&controller));
        part.map(|part| part.directory.as_path())
    }
}

/// The way into a group.
#[derive(Debug)]
pub(crate) struct Door(Vec<File>);

impl Door {
    /// Puts a process into the group; 0 is the caller.
    pub(crate) fn let_in(&self, process: i32) -> io::Result<()> {
        self.0.iter().try_for_each(|mut members| members.write_all(process.to_string().as_bytes()))
    }
}

/// Ends every process of a group and removes it; false if it is still there.
pub(super) fn remove(directory: &Path) -> bool {
    for attempt in 0..REMOVE_ATTEMPTS_MAX {
        match fs::remove_dir(directory) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            // What a killed process leaves is cleared a moment later.
            Err(_) if attempt > 0 => std::thread::sleep(REMOVE_PAUSE),
            Err(_) => {}
        }
        kill(directory);
    }
    tracing::warn!(group = %directory.display(), "a control group was not removed");
    false
}

/// Ends every process of a group.
fn kill(directory: &Path) {
    if fs::write(directory.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    for _ in 0..KILL_PASSES_MAX {
        let held: Vec<(i32, _)> = members(directory)
            .into_iter()
            .filter_map(|pid| Some((pid, rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?)))
            .collect();
        // Read again: a number that is still in the list is the process that is held.
        let still = members(directory);
        let meant: Vec<_> = held.iter().filter(|(pid, _)| still.contains(pid)).collect();
        if meant.is_empty() {
            return;
        }
        for (_, process) in meant {
            let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
        }
    }
}

fn members(directory: &Path) -> Vec<i32> {
    let text = fs::read_to_string(directory.join(MEMBERS)).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// The number after a name in a file of one name and number per line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn about(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
