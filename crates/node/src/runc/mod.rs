//! Containers that runc runs: what it is told, and what is removed after them.
//!
//! A container's supervisor prepares its files in a mount namespace of its own, hands them to `runc create`, and is the
//! parent of what comes of it, as it is of the first process of a container that Windlass runs by itself.

mod bundle;
mod filter;
mod system;
mod tool;

pub(crate) use bundle::{Config, MountPoint, Program};
pub use tool::{Contained, Runc, RuncError, clear};
