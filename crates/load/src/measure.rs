//! Times and what they amount to.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

/// The median and the 99th percentile, in milliseconds.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> Value {
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    json!({"p50_ms": at(0.5), "p99_ms": at(0.99)})
}

/// The unit of times in /proc.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processor time of this process so far.
pub(crate) fn own_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

/// The time since the epoch, to compare with other processes.
pub(crate) fn now_s() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
