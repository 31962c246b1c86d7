//! What the kernel says of a process: memory and processor time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The unit of times in /proc.
const TICKS_PER_SECOND: f64 = 100.0;
/// How long a process may take to end when asked.
const END_TIME_MAX: Duration = Duration::from_secs(20);

/// A process that ends with the value.
pub(super) struct Process(Child);

impl Process {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Self(child))
    }

    /// Whether it has ended by itself.
    pub(super) fn is_over(&mut self) -> Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Resident memory in bytes.
    pub(super) fn memory(&self) -> Result<f64> {
        self.figure("VmRSS:")
    }

    /// The most resident memory so far, in bytes.
    pub(super) fn peak(&self) -> Result<f64> {
        self.figure("VmHWM:")
    }

    fn figure(&self, name: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("the process is gone")?;
        let kib: f64 = line.split_whitespace().next().context("it has a value")?.parse()?;
        Ok(kib * 1024.0)
    }

    /// Processor time in seconds so far.
    pub(super) fn cpu(&self) -> Result<f64> {
        cpu(&Path::new("/proc").join(self.0.id().to_string()), &[11, 12])
    }
}

/// The sum of these times of the process of a directory in /proc, in seconds so far.
fn cpu(process: &Path, times: &[usize]) -> Result<f64> {
    let stat = fs::read_to_string(process.join("stat"))?;
    let (_, rest) = stat.rsplit_once(')').context("stat names the program")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: &usize| -> Result<f64> { Ok(fields.get(*index).context("stat is short")?.parse()?) };
    Ok(times.iter().map(ticks).sum::<Result<f64>>()? / TICKS_PER_SECOND)
}

/// All processes of one program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Family {
    /// Processor time so far, in seconds, with that of processes which they started and which ended.
    pub(super) cpu_s: f64,
    /// Memory of all but the first of them, in bytes; what several share is counted once.
    pub(super) memory: f64,
}

impl Family {
    /// The processes that run the program at `path`, of which `first` started the others.
    pub(super) fn of(path: &Path, first: &Process) -> Result<Self> {
        let mut family = Self::default();
        for entry in fs::read_dir("/proc")? {
            let process = entry?.path();
            if fs::read_link(process.join("exe")).is_ok_and(|program| program == path) {
                // Processes come and go while they are counted.
                family.cpu_s += cpu(&process, &[11, 12, 13, 14]).unwrap_or_default();
                if !process.ends_with(first.0.id().to_string()) {
                    family.memory += shared_memory(&process).unwrap_or_default();
                }
            }
        }
        Ok(family)
    }
}

/// Resident memory in bytes, of shared pages this process's part.
fn shared_memory(process: &Path) -> Result<f64> {
    let text = fs::read_to_string(process.join("smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).context("the process is gone")?;
    let kib: f64 = line.split_whitespace().next().context("Pss has a value")?.parse()?;
    Ok(kib * 1024.0)
}

impl Drop for Process {
    fn drop(&mut self) {
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        let begin = Instant::now();
        while asked.is_ok() && begin.elapsed() < END_TIME_MAX {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

/// The load of the machine.
pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}
