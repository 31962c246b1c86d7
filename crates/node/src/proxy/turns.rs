//! Which endpoint a client gets.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// The same client gets the same endpoint as long as the endpoints do not change.
pub(super) fn position(client: IpAddr, count: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    (hasher.finish() % count.max(1) as u64) as usize
}
