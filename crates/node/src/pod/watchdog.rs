//! Watches what a container uses and says when it is more than it may: processes by the node's limit, memory by its own
//! where no control group does.

use std::fmt;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

use super::bounds::{self, Bounds};
use super::live::LiveContainers;
use crate::cgroup::{Controller, Group, Limits};
use crate::usage::{self, Usage};

/// How often a container with a limit of memory is looked at, and how often one without.
const LOOK_OFTEN: Duration = Duration::from_millis(250);
const LOOK_SELDOM: Duration = Duration::from_secs(2);
/// A container with so many processes may be about to have too many: it is looked at often.
const PROCESSES_MANY: usize = 256;
/// Processes that one container may have; a program that has lost control of itself has more.
const PROCESSES_MAX: usize = 4096;

/// What a container uses too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Memory {
        used: u64,
        limit: u64,
    },
    /// All containers of its Pod together, of which it has the most.
    PodMemory {
        used: u64,
        limit: u64,
    },
    Processes(usize),
}

impl Excess {
    /// The reason in the status of the container.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Memory { .. } | Self::PodMemory { .. } => "OOMKilled",
            Self::Processes(_) => "TooManyProcesses",
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        match self {
            Self::Memory { used, limit } => {
                write!(formatter, "it used {} MiB of memory and may use {} MiB", mebibytes(*used), mebibytes(*limit))
            }
            Self::PodMemory { used, limit } => {
                let (used, limit) = (mebibytes(*used), mebibytes(*limit));
                write!(formatter, "its Pod used {used} MiB of memory, it the most of it, and may use {limit} MiB")
            }
            Self::Processes(count) => {
                write!(formatter, "it had {count} processes; a container may have {PROCESSES_MAX}")
            }
        }
    }
}

/// A container among the others of its Pod.
#[derive(Debug, Clone)]
pub(crate) struct Together {
    pub(crate) live: LiveContainers,
    /// The Pod and the container.
    pub(crate) uid: String,
    pub(crate) name: String,
}

/// Watches one container.
#[derive(Debug)]
pub(crate) struct Watchdog {
    init: i32,
    group: Option<Group>,
    together: Together,
    /// The limit of memory, whoever sees to it.
    memory: Option<u64>,
    /// The limits that the node itself has to see to: of the container and of its Pod.
    limits: (Option<u64>, Option<u64>),
    looks: Interval,
}

impl Watchdog {
    /// Watches the container whose first process is `init`.
    pub(crate) fn new(bounds: &Bounds, (init, group): (i32, Option<Group>), together: Together) -> Self {
        let looks = tokio::time::interval(LOOK_SELDOM);
        let mut watchdog = Self { init, group, together, memory: None, limits: (None, None), looks };
        watchdog.hold(bounds);
        watchdog
    }

    /// The limit of memory of the container.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Watches for other limits from now on.
    pub(crate) fn hold(&mut self, bounds: &Bounds) {
        let by_kernel = self.group.as_ref().is_some_and(|group| group.has(Controller::Memory));
        self.memory = Limits::of(Some(&bounds.resources)).memory;
        self.limits = if by_kernel { (None, None) } else { (self.memory, bounds.pod) };
        let often = self.limits != (None, None);
        self.looks = tokio::time::interval(if often { LOOK_OFTEN } else { LOOK_SELDOM });
        self.looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }

    /// Waits until the container uses too much. Safe to drop before it is done.
    pub(crate) async fn excess(&mut self) -> Excess {
        loop {
            self.looks.tick().await;
            let usage = usage::of(self.init, self.group.as_ref());
            let of_pod = || self.limits.1.and_then(|limit| self.together.excess(limit));
            if let Some(excess) = judge(usage, self.limits.0).or_else(of_pod) {
                return excess;
            }
            if usage.processes >= PROCESSES_MANY {
                self.looks.reset_after(LOOK_OFTEN);
            }
        }
    }
}

impl Together {
    /// Whether the Pod uses more memory than it may, and this container more of it than the others.
    fn excess(&self, limit: u64) -> Option<Excess> {
        let containers = self.live.of(&self.uid);
        let used = containers.iter().map(|live| (bounds::memory(&live.inside), live.inside.container.name.as_str()));
        let used: Vec<(u64, &str)> = used.collect();
        let total = used.iter().map(|(memory, _)| memory).sum();
        let is_largest = used.iter().max().is_some_and(|(_, name)| *name == self.name);
        (total > limit && is_largest).then_some(Excess::PodMemory { used: total, limit })
    }
}

fn judge(usage: Usage, limit: Option<u64>) -> Option<Excess> {
    match limit {
        Some(limit) if usage.memory > limit => Some(Excess::Memory { used: usage.memory, limit }),
        _ if usage.processes > PROCESSES_MAX => Some(Excess::Processes(usage.processes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_the_limit_is_too_much() {
        let usage = |memory, processes| Usage { memory, processes, ..Usage::default() };
        assert_eq!(judge(usage(10, 1), Some(10)), None);
        assert_eq!(judge(usage(11, 1), Some(10)), Some(Excess::Memory { used: 11, limit: 10 }));
        assert_eq!(judge(usage(u64::MAX, 1), None), None);
        assert_eq!(judge(usage(0, 4097), None), Some(Excess::Processes(4097)));
    }
}
