//! NodeMetrics and PodMetrics, from what a node says.

use serde_json::{Value, json};
use windlass_schema::{
    duration,
    kubelet::{Stats, Summary},
    quantity,
};

use crate::object::{Object, timestamp};

const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// The figures of a node; `None` if it has none.
pub(super) fn node(node: &Value, summary: &Summary, now: &str) -> Option<Value> {
    let stats = summary.node.stats.as_ref()?;
    let mut object = shell("NodeMetrics", node, &[stats], now)?;
    object["usage"] = usage(stats);
    Some(object)
}

/// The figures of a Pod; `None` if it has none.
pub(super) fn pod(pod: &Value, summary: &Summary, now: &str) -> Option<Value> {
    let own = summary.pods.iter().find(|known| known.pod_ref.uid == pod.uid())?;
    let stats: Vec<&Stats> = own.containers.iter().map(|container| &container.stats).collect();
    let mut object = shell("PodMetrics", pod, &stats, now)?;
    let container = |name: &str, stats: &Stats| json!({"name": name, "usage": usage(stats)});
    object["containers"] = own.containers.iter().map(|known| container(&known.name, &known.stats)).collect();
    Some(object)
}

/// What both have; the time is that of the oldest figures.
fn shell(kind: &str, of: &Value, stats: &[&Stats], now: &str) -> Option<Value> {
    let oldest = stats.iter().min_by_key(|stats| stats.cpu.time)?;
    let mut metadata = json!({"name": of.name(), "creationTimestamp": now});
    if !of.namespace().is_empty() {
        metadata["namespace"] = of.namespace().into();
    }
    if let Some(labels) = of.pointer("/metadata/labels") {
        metadata["labels"] = labels.clone();
    }
    // Whole milliseconds are as much as anybody reads.
    let window = oldest.cpu.window_nanoseconds / 1_000_000 * 1_000_000;
    Some(json!({
        "kind": kind, "apiVersion": API_VERSION, "metadata": metadata,
        "timestamp": timestamp(oldest.cpu.time),
        "window": duration::text(i64::try_from(window).unwrap_or(i64::MAX)),
    }))
}

fn usage(stats: &Stats) -> Value {
    let (cpu, memory) = (format!("{}n", stats.cpu.usage_nano_cores), stats.memory.working_set_bytes);
    // Kibibytes, as others tell it; the rest of one is nothing to anybody.
    let memory = format!("{}Ki", memory / 1024);
    json!({"cpu": quantity::canonical(&cpu), "memory": quantity::canonical(&memory)})
}

#[cfg(test)]
mod tests {
    use windlass_schema::kubelet::{ContainerStats, CpuStats, MemoryStats, NodeStats, PodReference, PodStats};

    use super::*;

    fn stats(second: i64, nano_cores: u64, bytes: u64) -> Stats {
        let time = jiff::Timestamp::from_second(second).unwrap();
        Stats {
            cpu: CpuStats { time, usage_nano_cores: nano_cores, window_nanoseconds: 15_000_400_000 },
            memory: MemoryStats { time, working_set_bytes: bytes },
        }
    }

    #[test]
    fn figures_are_those_of_containers_and_of_the_oldest_look() {
        let container = |name: &str, stats| ContainerStats { name: name.to_owned(), stats };
        let pod_ref = PodReference { uid: "u".to_owned(), ..PodReference::default() };
        let containers =
            vec![container("a", stats(20, 1_500_000, 3 << 20)), container("b", stats(10, 1_234_567_891, 5000))];
        let summary = Summary {
            node: NodeStats { node_name: "n".to_owned(), stats: None },
            pods: vec![PodStats { pod_ref, containers }],
        };
        let live = json!({"metadata": {"name": "p", "namespace": "s", "uid": "u", "labels": {"a": "b"}}});
        let shown = pod(&live, &summary, "2030-01-01T00:00:00Z").unwrap();
        assert_eq!(
            shown,
            json!({
                "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
                "metadata": {"name": "p", "namespace": "s", "labels": {"a": "b"}, "creationTimestamp": "2030-01-01T00:00:00Z"},
                "timestamp": "1970-01-01T00:00:10Z", "window": "15s",
                "containers": [
                    {"name": "a", "usage": {"cpu": "1500u", "memory": "3Mi"}},
                    {"name": "b", "usage": {"cpu": "1234567891n", "memory": "4Ki"}},
                ],
            })
        );
        let other = json!({"metadata": {"name": "p", "uid": "another"}});
        assert_eq!(pod(&other, &summary, ""), None);
        assert_eq!(node(&live, &summary, ""), None, "a node that does not know yet");
    }
}
