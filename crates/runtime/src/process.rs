//! What this process uses of the machine, for the dashboards that ask.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// What the kernel counts in: user space always sees hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time and memory, read when somebody looks.
#[derive(Debug)]
pub(crate) struct Usage;

impl Collector for Usage {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let (stat, status) = (read("stat"), read("status"));
        if let Some(seconds) = cpu_seconds(&stat) {
            let counter = ConstCounter::new(seconds);
            let descriptor =
                encoder.encode_descriptor("process_cpu", "CPU time", Some(&Unit::Seconds), counter.metric_type())?;
            counter.encode(descriptor)?;
        }
        let gauges = [
            ("process_resident_memory_bytes", "Memory in use", bytes(&status, "VmRSS:")),
            ("process_virtual_memory_bytes", "Address space in use", bytes(&status, "VmSize:")),
            ("process_open_fds", "Open files", open_files()),
            ("process_max_fds", "How many files may be open", files_max(&read("limits"))),
            (
                "process_start_time_seconds",
                "When the process began",
                started(&stat, &std::fs::read_to_string("/proc/stat").unwrap_or_default()),
            ),
        ];
        for (name, help, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

fn files_max(limits: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The 22nd field, in ticks since the machine began.
fn started(stat: &str, machine: &str) -> Option<i64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: f64 = rest.split_whitespace().nth(19)?.parse().ok()?;
    let began: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some((began + ticks / TICKS_PER_SECOND) as i64)
}

/// User and system time are the 14th and 15th field; the 2nd, a name in parentheses, may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// A line of the status, which counts in kibibytes.
fn bytes(status: &str, title: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(title))?;
    let kibibytes: i64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_confuse() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 500 0 0 0 150 50 0 0 20 0 4 0 100 1000 200";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(bytes("Name:\tx\nVmRSS:\t    2048 kB\n", "VmRSS:"), Some(2_097_152));
        assert_eq!(started(stat, "cpu 1\nbtime 1000\n"), Some(1001));
        assert_eq!(
            files_max("Max open files            1024                 4096                 files\n"),
            Some(1024)
        );
    }
}
