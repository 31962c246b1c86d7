//! SPDY/3.1 as far as Kubernetes speaks it: streams that the client opens, without flow control.

mod connection;
mod dictionary;
mod frame;
mod header;

pub(super) use connection::{Connection, Opened, StreamOutput};
#[cfg(any(test, feature = "fuzz"))]
pub(super) use frame::Frame;
