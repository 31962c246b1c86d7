//! Services: their addresses lead to ready endpoints, and Pods find them by name. Ports of the machine lead to Pods.

mod datagrams;
mod directory;
mod door;
mod forward;
mod host;
mod leaving;
mod routes;
mod turns;
mod watch;

pub(crate) use directory::Directory;
pub(crate) use host::HostPorts;
pub(crate) use leaving::{Departure, Leaving};
#[cfg(test)]
pub(crate) use routes::tests;
pub(crate) use routes::{Key, World};
pub(crate) use watch::run;
