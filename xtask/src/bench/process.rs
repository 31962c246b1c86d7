//! What the kernel says of a process: memory and processor time.

use std::fs;
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
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the process is gone")?;
        let kib: f64 = line.split_whitespace().next().context("VmRSS has a value")?.parse()?;
        Ok(kib * 1024.0)
    }

    /// Processor time in seconds so far.
    pub(super) fn cpu(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, rest) = stat.rsplit_once(')').context("stat names the program")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("stat is short")?.parse()?) };
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }
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
