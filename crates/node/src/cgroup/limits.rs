//! What a container may use, and how each version of control groups is told.

use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use windlass_schema::pod_resources;

use super::group::{Controller, Version};
use crate::quantity;

/// Processes and threads of one container.
pub(crate) const PROCESSES_MAX: u64 = 16_384;
/// In which time a container may use so much processor time, in microseconds; as kubelet's default.
const PERIOD_MICROS: u64 = 100_000;
/// The kernel takes no less.
const QUOTA_MICROS_MIN: u64 = 1_000;
const SHARES_MIN: u64 = 2;
const SHARES_MAX: u64 = 262_144;
/// Lower priorities than this would starve a Pod beside the programs of a desktop.
const NICE_MAX: u8 = 5;

/// What a container may use, or a Pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Thousandths of a processor.
    pub(crate) cpu: Option<u64>,
    /// Thousandths of a processor that it asked for.
    pub(crate) share: u64,
}

/// A file of a group and what is written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) file: &'static str,
    pub(super) value: String,
    /// Whether the container must not run without it.
    pub(super) required: bool,
}

impl Limits {
    /// What may be used by a specification.
    pub(crate) fn of(resources: Option<&ResourceRequirements>) -> Self {
        let limit = |name: &str| resources.and_then(|resources| resources.limits.as_ref()?.get(name));
        let request = |name: &str| resources.and_then(|resources| resources.requests.as_ref()?.get(name));
        let number =
            |quantity: Option<&Quantity>, unit| quantity.and_then(|quantity| quantity::limit(&quantity.0, unit));
        let cpu = number(limit("cpu"), "1m");
        Self { memory: number(limit("memory"), "1"), cpu, share: number(request("cpu"), "1m").or(cpu).unwrap_or(0) }
    }

    /// What a Pod as a whole may use; its share is that of its containers together where it does not say.
    pub(crate) fn of_pod(pod: &Pod) -> Self {
        let own = Self::of(pod.spec.as_ref().and_then(|spec| spec.resources.as_ref()));
        let requests = serde_json::to_value(pod).map(|pod| pod_resources::total(&pod, "requests")).unwrap_or_default();
        let share = requests.get("cpu").and_then(|amount| quantity::limit(&amount.to_string(), "1m"));
        Self { share: share.unwrap_or(own.share), ..own }
    }

    /// The priority of a container where no group holds it to its share: one step is a fifth of the processor time.
    pub(crate) fn nice(&self) -> u8 {
        let steps = (1..=NICE_MAX).find(|step| self.share as f64 >= 1000.0 / 1.25_f64.powi(i32::from(*step)));
        match steps {
            _ if self.share >= 1000 => 0,
            Some(steps) => steps,
            None => NICE_MAX,
        }
    }

    /// What is written to the files of a controller of a container's group, in this order.
    pub(super) fn settings(&self, version: Version, controller: Controller) -> Vec<Setting> {
        let mut settings = self.shared(version, controller);
        match (version, controller) {
            // The container ends as a whole.
            (Version::V2, Controller::Memory) => {
                settings.push(Setting { file: "memory.oom.group", value: "1".to_owned(), required: false });
            }
            (_, Controller::Processes) => {
                settings.push(Setting { file: "pids.max", value: PROCESSES_MAX.to_string(), required: true });
            }
            _ => {}
        }
        settings
    }

    /// What is written for a Pod as well as for a container.
    pub(super) fn shared(&self, version: Version, controller: Controller) -> Vec<Setting> {
        let must = |file, value: String| Setting { file, value, required: true };
        let may = |file, value: String| Setting { file, value, required: false };
        let quota = self.cpu.map(|cpu| (cpu.saturating_mul(PERIOD_MICROS) / 1000).max(QUOTA_MICROS_MIN));
        let shares = (self.share.saturating_mul(1024) / 1000).clamp(SHARES_MIN, SHARES_MAX);
        let mut settings = Vec::new();
        match (version, controller) {
            (Version::V2, Controller::Memory) => {
                settings.extend(self.memory.map(|bytes| must("memory.max", bytes.to_string())));
                // What does not fit is not to go to the disk instead.
                settings.extend(self.memory.map(|_| may("memory.swap.max", "0".to_owned())));
            }
            (Version::V1, Controller::Memory) => {
                settings.extend(self.memory.map(|bytes| must("memory.limit_in_bytes", bytes.to_string())));
                settings.extend(self.memory.map(|bytes| may("memory.memsw.limit_in_bytes", bytes.to_string())));
            }
            (Version::V2, Controller::Cpu) => {
                settings.push(must("cpu.weight", weight(shares).to_string()));
                settings.extend(quota.map(|quota| must("cpu.max", format!("{quota} {PERIOD_MICROS}"))));
            }
            (Version::V1, Controller::Cpu) => {
                settings.push(must("cpu.shares", shares.to_string()));
                settings.extend(quota.map(|_| must("cpu.cfs_period_us", PERIOD_MICROS.to_string())));
                // A group above may have less; the kernel refuses more and holds the container to that one.
                settings.extend(quota.map(|quota| may("cpu.cfs_quota_us", quota.to_string())));
            }
            (_, Controller::Processes | Controller::Accounting) => {}
        }
        settings
    }
}

/// The weight of version 2 for the shares of version 1, as Kubernetes turns one into the other.
fn weight(shares: u64) -> u64 {
    1 + (shares - SHARES_MIN) * 9999 / (SHARES_MAX - SHARES_MIN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(resources: serde_json::Value, controller: Controller, v2: &[&str], v1: &[&str]) {
        let resources: ResourceRequirements = serde_json::from_value(resources).unwrap();
        let limits = Limits::of(Some(&resources));
        for (version, expect) in [(Version::V2, v2), (Version::V1, v1)] {
            let settings = limits.settings(version, controller).into_iter();
            let written: Vec<String> = settings.map(|setting| format!("{}={}", setting.file, setting.value)).collect();
            assert_eq!(written, expect, "{version:?}");
        }
    }

    #[test]
    fn limits_are_told_in_the_words_of_each_version() {
        check(
            json!({"limits": {"memory": "64Mi"}}),
            Controller::Memory,
            &["memory.max=67108864", "memory.swap.max=0", "memory.oom.group=1"],
            &["memory.limit_in_bytes=67108864", "memory.memsw.limit_in_bytes=67108864"],
        );
        check(json!({}), Controller::Memory, &["memory.oom.group=1"], &[]);
        check(
            json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "250m"}}),
            Controller::Cpu,
            &["cpu.weight=10", "cpu.max=50000 100000"],
            &["cpu.shares=256", "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=50000"],
        );
        check(json!({}), Controller::Cpu, &["cpu.weight=1"], &["cpu.shares=2"]);
        check(
            json!({"limits": {"cpu": "1m"}}),
            Controller::Cpu,
            &["cpu.weight=1", "cpu.max=1000 100000"],
            &["cpu.shares=2", "cpu.cfs_period_us=100000", "cpu.cfs_quota_us=1000"],
        );
    }

    #[test]
    fn priorities_follow_what_was_asked_for() {
        let nice = |share| Limits { share, ..Limits::default() }.nice();
        assert_eq!([2000, 1000, 900, 800, 500, 330, 100, 0].map(nice), [0, 0, 1, 1, 4, 5, 5, 5]);
    }
}
