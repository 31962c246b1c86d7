//! Control groups: the kernel itself holds containers to their limits, where this user has a part of its hierarchies.
//!
//! Each container has a group of its own in that of its Pod below the node's, in the one hierarchy of version 2 or in one per controller of
//! version 1. Nothing about them is written down but where the node's groups are: a container that outlives its node knows
//! its group, and groups that belong to no Pod are removed when the node has seen the list of Pods.

mod group;
mod limits;
mod place;
#[cfg(test)]
mod tests;
mod tree;

pub use group::{Controller, Group, Version};
pub(crate) use limits::{Limits, PROCESSES_MAX};
pub use tree::clear;
pub(crate) use tree::{Cgroups, Unavailable, remove_root};
