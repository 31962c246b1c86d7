//! Streams between a client and a container: programs run in it, its own program attached to, its ports.

mod attach;
mod channel;
mod door;
mod exec;
mod forward;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod handshake;
mod multiplexed;
mod options;
mod outcome;
mod pump;
mod remote;
mod spdy;
mod tunnel;
mod view;
mod websocket;

pub(crate) use door::Door;
pub(crate) use forward::{Destination, connect};
