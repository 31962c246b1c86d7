//! Services: their addresses lead to ready endpoints, and Pods find them by name.

mod directory;
mod forward;
mod routes;
mod watch;

pub(crate) use directory::Directory;
pub(crate) use watch::run;
