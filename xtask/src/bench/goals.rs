//! What is measured, and what Windlass is to reach.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Lower,
    Higher,
}

/// What a row is to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// So many times better than the real thing.
    Times(f64),
    /// At most this value of Windlass.
    AtMost(f64),
    /// Shown, but nothing is promised.
    None,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) goal: Goal,
}

const fn row(name: &'static str, text: &'static str, unit: &'static str, better: Better, goal: Goal) -> Row {
    Row { name, text, unit, better, goal }
}

use Better::Lower;
use Goal::{AtMost, None, Times};

/// The rows that do not follow from verb, number in flight and durability.
pub(super) const ROWS: [Row; 28] = [
    row("start_s", "start to ready, process", "s", Lower, Times(25.0)),
    row("start_cpu_s", "start to ready, CPU", "s", Lower, None),
    row("start_in_process_ms", "start to ready, in-process", "ms", Lower, AtMost(9.99)),
    row("idle_mb", "memory, idle", "MB", Lower, Times(10.0)),
    row("object_kb", "memory per object (10,000)", "KB", Lower, Times(8.0)),
    row("watch_1_p50_ms", "watch event, 1 watcher, p50", "ms", Lower, None),
    row("watch_1_p99_ms", "watch event, 1 watcher, p99", "ms", Lower, None),
    row("watch_100_p50_ms", "watch event, 100 watchers, p50", "ms", Lower, None),
    row("watch_100_p99_ms", "watch event, 100 watchers, p99", "ms", Lower, Times(4.0)),
    row("watch_1_relaxed_p50_ms", "watch event, 1 watcher, relaxed, p50", "ms", Lower, None),
    row("watch_1_relaxed_p99_ms", "watch event, 1 watcher, relaxed, p99", "ms", Lower, None),
    row("watch_100_relaxed_p50_ms", "watch event, 100 watchers, relaxed, p50", "ms", Lower, None),
    row("watch_100_relaxed_p99_ms", "watch event, 100 watchers, relaxed, p99", "ms", Lower, None),
    row("watch_100_cpu_us", "watch, server CPU per event", "us", Lower, None),
    row("list_whole_s", "list of 10,000, whole", "s", Lower, Times(7.0)),
    row("list_paged_s", "list of 10,000, pages of 500", "s", Lower, Times(7.0)),
    row("list_cpu_s", "list, server CPU per whole and paged", "s", Lower, None),
    row("definitions_mb", "memory for the definitions", "MB", Lower, None),
    row("definitions_served_s", "definitions, until all are served", "s", Lower, None),
    row("definitions_discovery_ms", "discovery with the definitions", "ms", Lower, None),
    row("pods_ready_s", "Deployments made to all Pods ready", "s", Lower, None),
    row("pods_available_s", "until every Deployment says so", "s", Lower, None),
    row("pods_cpu_s", "CPU of API server, store, controllers, scheduler", "s", Lower, None),
    row("pods_mb", "memory of the same, after", "MB", Lower, None),
    row("growth_memory", "growth of memory, log-log slope", "", Lower, AtMost(1.05)),
    row("growth_list", "growth of a list, log-log slope", "", Lower, AtMost(1.05)),
    row("growth_create", "growth of CPU per create, log-log slope", "", Lower, AtMost(0.1)),
    row("growth_get", "growth of CPU per get, log-log slope", "", Lower, AtMost(0.1)),
];

/// The verbs of the throughput rows.
pub(super) const VERBS: [&str; 4] = ["create", "update", "apply", "get"];
/// The numbers in flight of the throughput rows.
pub(super) const IN_FLIGHT: [usize; 3] = [1, 16, 64];

/// The goal of a throughput row.
pub(super) fn rate_goal(verb: &str, in_flight: usize, durable: bool) -> Goal {
    if verb == "create" && in_flight == 16 && durable { Times(8.0) } else { None }
}
