//! Streams between a client and a container: programs run in it, its own program attached to, its ports.

mod channel;
mod door;
mod exec;
mod options;
mod outcome;
mod pump;
mod remote;
mod websocket;

pub(crate) use door::Door;
