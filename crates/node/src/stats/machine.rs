//! What the whole machine uses, which is what a node tells of itself.

use std::fs;
use std::time::{Duration, Instant};

use super::looks::Look;
use crate::usage::TICKS_PER_SECOND;

/// A look at the machine; `None` where the kernel does not tell.
pub(super) fn look() -> Option<Look> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    Some(Look { at: Instant::now(), cpu: busy(&stat)?, memory: used(&memory)? })
}

/// The time that all processors together were not idle.
fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // user nice system idle iowait irq softirq steal; what guests take is part of user.
    let idle: u64 = [3, 4, 7].iter().filter_map(|index| ticks.get(*index)).sum();
    let ticks = ticks.iter().take(8).sum::<u64>().saturating_sub(idle);
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The bytes that cannot be had without taking them from somebody.
fn used(text: &str) -> Option<u64> {
    let kilobytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    Some(kilobytes("MemTotal")?.saturating_sub(kilobytes("MemAvailable")?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(busy(stat), Some(Duration::from_millis(1630)));
        assert_eq!(busy("intr 1\n"), None);
        let memory = "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:    500 kB\n";
        assert_eq!(used(memory), Some(1500 * 1024));
        assert_eq!(used("MemTotal: 5 kB"), None);
    }
}
