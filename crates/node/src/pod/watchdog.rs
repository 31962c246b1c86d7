//! Watches what a container uses and says when it is more than it may: processes by the node's limit, memory by its own
//! where no control group does.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;
use tokio::time::{Interval, MissedTickBehavior};

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
    Memory { used: u64, limit: u64 },
    Processes(usize),
}

impl Excess {
    /// The reason in the status of the container.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Memory { .. } => "OOMKilled",
            Self::Processes(_) => "TooManyProcesses",
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { used, limit } => {
                let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
                write!(formatter, "it used {} MiB of memory and may use {} MiB", mebibytes(*used), mebibytes(*limit))
            }
            Self::Processes(count) => {
                write!(formatter, "it had {count} processes; a container may have {PROCESSES_MAX}")
            }
        }
    }
}

/// Watches one container.
#[derive(Debug)]
pub(crate) struct Watchdog {
    init: i32,
    group: Option<Group>,
    limit: Option<u64>,
    looks: Interval,
}

impl Watchdog {
    /// Watches the container whose first process is `init`.
    pub(crate) fn new(container: &Container, init: i32, group: Option<Group>) -> Self {
        let by_kernel = group.as_ref().is_some_and(|group| group.has(Controller::Memory));
        let limit = Limits::of(container).memory.filter(|_| !by_kernel);
        let mut looks = tokio::time::interval(if limit.is_some() { LOOK_OFTEN } else { LOOK_SELDOM });
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { init, group, limit, looks }
    }

    /// Waits until the container uses too much. Safe to drop before it is done.
    pub(crate) async fn excess(&mut self) -> Excess {
        loop {
            self.looks.tick().await;
            let usage = usage::of(self.init, self.group.as_ref());
            if let Some(excess) = judge(usage, self.limit) {
                return excess;
            }
            if usage.processes >= PROCESSES_MANY {
                self.looks.reset_after(LOOK_OFTEN);
            }
        }
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
