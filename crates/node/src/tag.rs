//! A short name that tells what one node made on the machine from what others did.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// The tag of the node with this directory.
pub(crate) fn of(node: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    node.hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}
