//! What the processes of a container use, as its control group tells it or else the kernel's table of processes.

use std::fs;
use std::time::Duration;

use crate::cgroup::Group;

/// Ticks of the clock in which the kernel counts processor time; the same on every Linux.
pub(crate) const TICKS_PER_SECOND: u64 = 100;
/// A container with more processes than this is not counted to its end.
const PROCESSES_MAX: usize = 100_000;

/// What the processes of a container use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Memory that is theirs: without files, which the kernel can drop.
    pub(crate) memory: u64,
    /// Processor time, that of processes that ended included.
    pub(crate) cpu: Duration,
    pub(crate) processes: usize,
}

/// What the container whose first process is `init` uses.
pub(crate) fn of(init: i32, group: Option<&Group>) -> Usage {
    group.and_then(Group::usage).unwrap_or_else(|| of_processes(init))
}

/// The sum of what the processes use. Processes that end meanwhile count for nothing.
fn of_processes(init: i32) -> Usage {
    let mut usage = Usage::default();
    let mut left = vec![init];
    while let Some(process) = left.pop() {
        let Some((memory, ticks)) = measure(process) else { continue };
        usage.memory += memory;
        usage.cpu += Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
        usage.processes += 1;
        if usage.processes + left.len() >= PROCESSES_MAX {
            break;
        }
        left.extend(children(process));
    }
    usage
}

/// Memory in bytes and processor time in ticks of one process.
fn measure(process: i32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some((own_memory(&status), processor_time(&stat)?))
}

/// Memory that belongs to the process, from its `status`.
fn own_memory(status: &str) -> u64 {
    let kilobytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim_start_matches(':').split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    (kilobytes("RssAnon") + kilobytes("RssShmem")) * 1024
}

/// Its own processor time and that of the children it waited for, from its `stat`.
fn processor_time(stat: &str) -> Option<u64> {
    // The name of the program comes in brackets and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4).map(str::parse::<u64>);
    times.collect::<Result<Vec<u64>, _>>().ok().filter(|times| times.len() == 4).map(|times| times.iter().sum())
}

/// The processes that any thread of a process has started and that still have it as their parent.
pub(crate) fn children(process: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    texts.flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let status =
            "Name:\tx\nVmRSS:\t    9000 kB\nRssAnon:\t    1000 kB\nRssFile:\t    7000 kB\nRssShmem:\t      24 kB\n";
        assert_eq!(own_memory(status), 1024 * 1024);
        assert_eq!(own_memory("Name:\tkthread\n"), 0, "a process without memory");
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 3 4 5 6 20 0 1 0 9 0 0";
        assert_eq!(processor_time(stat), Some(18));
        assert_eq!(processor_time("7 (cut off"), None);
    }

    #[test]
    fn a_tree_of_processes_is_counted_whole() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "sleep 60 & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The line says that the grandchild is there.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let usage = of_processes(i32::try_from(child.id()).unwrap());
        assert_eq!(usage.processes, 2);
        assert!(of_processes(own).processes >= 3 && of_processes(own).memory > usage.memory);
        Command::new("pkill").args(["-P", &child.id().to_string()]).status().unwrap();
        child.wait().unwrap();
    }
}
