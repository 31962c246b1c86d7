//! The node agent: Pods as sandboxed host processes.

mod config;
mod event;
pub mod image;
mod node;
mod registration;
pub mod sandbox;
mod sys;

pub use config::{AddressRange, NodeConfig};
pub use node::{Body, Node, NodeError};
pub use sandbox::{Capabilities, sandbox_entry};
