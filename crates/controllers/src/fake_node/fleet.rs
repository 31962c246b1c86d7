//! The nodes that only seem to run Pods: how many, and what they are called.

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

/// As many nodes as have an address.
pub const NODES_MAX: usize = 5_000;

/// A node with this annotation, set to `true`, is dead: it renews no lease, and nothing moves on it.
const DOWN: &str = "windlass.dev/fake-down";

/// What all names begin with.
const PREFIX: &str = "fake-node-";

/// The nodes, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fleet {
    count: usize,
}

impl Fleet {
    /// So many nodes, at most [`NODES_MAX`].
    pub(super) fn new(count: usize) -> Self {
        Self { count: count.min(NODES_MAX) }
    }

    /// The names of all.
    pub(super) fn names(self) -> impl Iterator<Item = String> {
        (0..self.count).map(|number| format!("{PREFIX}{number}"))
    }

    /// Whether the node of this name is one of them.
    pub(super) fn has(self, name: &str) -> bool {
        number(name).is_some_and(|number| number < self.count)
    }
}

/// The address of the node of this name; nothing answers there.
pub(super) fn address(name: &str) -> String {
    let number = number(name).unwrap_or_default();
    format!("10.245.{}.{}", number / 250, number % 250 + 1)
}

/// Whether somebody wants the node to be dead.
pub(super) fn is_down(node: &Node) -> bool {
    node.annotations().get(DOWN).is_some_and(|value| value == "true")
}

fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix(PREFIX)?;
    digits.parse().ok().filter(|number: &usize| number.to_string() == digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbers_in_order() {
        let fleet = Fleet::new(2);
        assert_eq!(fleet.names().collect::<Vec<_>>(), ["fake-node-0", "fake-node-1"]);
        let has = ["fake-node-1", "fake-node-2", "fake-node-01", "windlass"].map(|name| fleet.has(name));
        assert_eq!(has, [true, false, false, false]);
        assert_eq!(
            (address("fake-node-0").as_str(), address("fake-node-4999").as_str()),
            ("10.245.0.1", "10.245.19.250")
        );
    }
}
