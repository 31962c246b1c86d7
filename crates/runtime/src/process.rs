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
        let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return Ok(()) };
        if let Some(seconds) = cpu_seconds(&stat) {
            let counter = ConstCounter::new(seconds);
            let descriptor =
                encoder.encode_descriptor("process_cpu", "CPU time", Some(&Unit::Seconds), counter.metric_type())?;
            counter.encode(descriptor)?;
        }
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
        if let Some(bytes) = resident_bytes(&status) {
            let gauge = ConstGauge::new(bytes);
            let descriptor = encoder.encode_descriptor(
                "process_resident_memory",
                "Memory in use",
                Some(&Unit::Bytes),
                gauge.metric_type(),
            )?;
            gauge.encode(descriptor)?;
        }
        Ok(())
    }
}

/// User and system time are the 14th and 15th field; the 2nd, a name in parentheses, may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
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
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2_097_152));
    }
}
