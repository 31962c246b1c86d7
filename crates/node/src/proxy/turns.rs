//! Which endpoint a client gets.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use super::leaving::Leaving;
use super::routes::Route;

/// The endpoints in the order in which they are tried for a client whose turn it is: those of Pods that end come last.
pub(super) fn order(route: &Route, client: IpAddr, turn: usize, leaving: &Leaving) -> Vec<SocketAddr> {
    let count = route.backends.len();
    let first = if route.sticky { position(client, count) } else { turn };
    let turned = (0..count).map(|attempt| route.backends[first.wrapping_add(attempt) % count]);
    let (last, mut order): (Vec<_>, Vec<_>) = turned.partition(|backend| leaving.has(backend.ip()));
    order.extend(last);
    order
}

/// The same client gets the same endpoint as long as the endpoints do not change.
fn position(client: IpAddr, count: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    (hasher.finish() % count.max(1) as u64) as usize
}
