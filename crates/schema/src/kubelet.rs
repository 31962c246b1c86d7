//! What agents of nodes say in the same words, whether they run Pods or only seem to: the kubelet's.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The path at which a node tells what its Pods use.
pub const SUMMARY_PATH: &str = "/stats/summary";

/// What a node and its Pods use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The node as a whole.
    pub node: NodeStats,
    /// Its Pods; those of which too little is known are left out.
    pub pods: Vec<PodStats>,
}

/// What a node uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStats {
    /// Its name.
    pub node_name: String,
    /// None if too little is known.
    #[serde(flatten)]
    pub stats: Option<Stats>,
}

/// What a Pod uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStats {
    /// Which Pod.
    pub pod_ref: PodReference,
    /// Its containers that run.
    pub containers: Vec<ContainerStats>,
}

/// Which Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodReference {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
}

/// What a container uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerStats {
    /// Its name.
    pub name: String,
    /// The figures.
    #[serde(flatten)]
    pub stats: Stats,
}

/// Processor and memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The processor.
    pub cpu: CpuStats,
    /// The memory.
    pub memory: MemoryStats,
}

/// How much of the processor is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpuStats {
    /// When it was looked at.
    pub time: Timestamp,
    /// Billionths of a processor, on average over the window.
    pub usage_nano_cores: u64,
    /// How long before `time` the window began. The kubelet does not say.
    pub window_nanoseconds: u64,
}

/// How much memory is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStats {
    /// When it was looked at.
    pub time: Timestamp,
    /// Bytes that cannot be had without harm to whoever uses them.
    pub working_set_bytes: u64,
}

/// This machine's processor, as nodes name it.
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_where_the_kubelet_has_them() {
        let time: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let stats = Stats {
            cpu: CpuStats { time, usage_nano_cores: 5, window_nanoseconds: 7 },
            memory: MemoryStats { time, working_set_bytes: 9 },
        };
        let containers = vec![ContainerStats { name: "c".to_owned(), stats: stats.clone() }];
        let summary = Summary {
            node: NodeStats { node_name: "n".to_owned(), stats: Some(stats) },
            pods: vec![PodStats { pod_ref: PodReference::default(), containers }],
        };
        let written = serde_json::to_value(&summary).unwrap();
        assert_eq!(written["node"]["cpu"]["usageNanoCores"], 5);
        assert_eq!(written["pods"][0]["containers"][0]["memory"]["workingSetBytes"], 9);
        assert_eq!(serde_json::from_value::<Summary>(written).unwrap(), summary);
        let silent = Summary::default();
        let written = serde_json::to_value(&silent).unwrap();
        assert_eq!(serde_json::from_value::<Summary>(written).unwrap(), silent);
    }
}
