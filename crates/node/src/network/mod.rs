//! Networks of Pods: where root wants it, each Pod has a network namespace of its own.
//!
//! ```text
//! Pod: eth0 10.X.128.n ── veth ── bridge, 10.X.128.1 ── host
//!      default route: the bridge     10.X.0.0/17, the Services: local to the host as a whole, served by the node's proxy
//! ```
//!
//! All of it is made with `ip`, by names that follow from the node's directory and the Pod's id, so that a node that was
//! killed finds again what it made.

mod bridge;
mod overlap;
mod space;
mod tool;

pub use bridge::{Network, bridge_name, clear};
pub(crate) use space::connect_inside;
pub use tool::NetworkError;
