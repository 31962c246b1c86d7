//! How good a node is for a Pod beyond its wishes: room that is left, room that is even, images that are there.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Node, PodSpec};

use super::fit::{Footprint, Load};
use crate::quantity::Amount;

/// What each of the three counts for at most.
const POINTS_MAX: f64 = 100.0;
/// The resources whose room counts.
const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// Images smaller than this are loaded in no time; larger ones count the same from the upper bound on, per container.
const IMAGE_BYTES_MIN: f64 = 23.0 * 1024.0 * 1024.0;
const IMAGE_BYTES_MAX: f64 = 1000.0 * 1024.0 * 1024.0;

/// What counts of the images of a Pod: for each how many of all nodes have it.
pub(super) struct Worth<'a> {
    footprint: &'a Footprint,
    images: HashMap<&'a str, usize>,
    containers: usize,
    nodes: usize,
}

impl<'a> Worth<'a> {
    /// For a Pod among these nodes.
    pub(super) fn of(spec: &'a PodSpec, footprint: &'a Footprint, nodes: &[&Node]) -> Self {
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        let names: Vec<&str> = containers.filter_map(|container| container.image.as_deref()).collect();
        let having = |image: &str| nodes.iter().filter(|node| size(node, image).is_some()).count();
        let images = names.iter().map(|image| (*image, having(image))).collect();
        Self { footprint, images, containers: names.len(), nodes: nodes.len() }
    }

    /// The points of a node with this load; more are better.
    pub(super) fn points(&self, node: &Node, load: &Load) -> i64 {
        let shares: Vec<f64> = RESOURCES.iter().filter_map(|resource| self.share(node, load, resource)).collect();
        (free(&shares) + even(&shares) + self.at_hand(node)) as i64
    }

    /// The share of a resource that is taken with the Pod there; `None` if the node does not have it.
    fn share(&self, node: &Node, load: &Load, resource: &str) -> Option<f64> {
        let status = node.status.as_ref()?;
        let has = Amount::from(status.allocatable.as_ref().or(status.capacity.as_ref())?.get(resource)?);
        let taken = load.requested(resource) + self.footprint.requested(resource);
        (has > Amount::default()).then(|| (taken.nanos() as f64 / has.nanos() as f64).min(1.0))
    }

    fn at_hand(&self, node: &Node) -> f64 {
        let spread = |having: usize| having as f64 / self.nodes.max(1) as f64;
        let bytes = self.images.iter().filter_map(|(image, having)| Some(size(node, image)? as f64 * spread(*having)));
        let (bytes, most) = (bytes.sum::<f64>(), IMAGE_BYTES_MAX * self.containers.max(1) as f64);
        POINTS_MAX * (bytes.clamp(IMAGE_BYTES_MIN, most) - IMAGE_BYTES_MIN) / (most - IMAGE_BYTES_MIN)
    }
}

/// The more is free, the better.
fn free(shares: &[f64]) -> f64 {
    let free: f64 = shares.iter().map(|share| 1.0 - share).sum();
    POINTS_MAX * free / shares.len().max(1) as f64
}

/// The more alike the shares, the better: what is left of one resource is of no use without the other.
fn even(shares: &[f64]) -> f64 {
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len().max(1) as f64;
    POINTS_MAX * (1.0 - variance.sqrt())
}

/// The bytes of an image, if the node has it.
fn size(node: &Node, image: &str) -> Option<i64> {
    let images = node.status.as_ref()?.images.as_ref()?;
    let named = |name: &String| name == image || name.strip_suffix(image).is_some_and(|rest| rest.ends_with('/'));
    let found = images.iter().find(|known| known.names.iter().flatten().any(named))?;
    Some(found.size_bytes.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(cpu: &str, image: Option<&str>) -> Node {
        let images: Vec<_> = image.map(|name| json!({"names": [name], "sizeBytes": 500 << 20})).into_iter().collect();
        serde_json::from_value(
            json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu, "memory": "4Gi"}, "images": images}}),
        )
        .unwrap()
    }

    fn spec(cpu: &str, memory: &str) -> PodSpec {
        serde_json::from_value(json!({"containers": [{"name": "c", "image": "web:1",
            "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}))
        .unwrap()
    }

    /// The points of each node.
    fn points(pod: &PodSpec, nodes: &[(Node, Load)]) -> Vec<i64> {
        let footprint = Footprint::of(pod);
        let all: Vec<&Node> = nodes.iter().map(|(node, _)| node).collect();
        let worth = Worth::of(pod, &footprint, &all);
        nodes.iter().map(|(node, load)| worth.points(node, load)).collect()
    }

    #[test]
    fn room_evenness_and_images_count() {
        let full = || {
            let mut load = Load::default();
            load.add(&Footprint::of(&spec("3", "3Gi")));
            load
        };
        let pod = spec("1", "1Gi");
        assert_eq!(points(&pod, &[(node("4", None), Load::default()), (node("4", None), full())]), [175, 100]);
        let lopsided = points(&pod, &[(node("4", None), Load::default()), (node("400", None), Load::default())]);
        assert_eq!(lopsided, [175, 175], "processors are of no use without memory to go with them");
        let images = points(
            &pod,
            &[(node("4", Some("docker.io/library/web:1")), Load::default()), (node("4", None), Load::default())],
        );
        assert_eq!(images, [198, 175]);
        assert_eq!(points(&pod, &[(node("4", Some("other/web:12")), Load::default())]), [175]);
    }
}
