//! The node agent: Pods as sandboxed host processes.

mod account;
mod address;
mod cache;
pub mod cgroup;
pub mod chaos;
mod config;
mod context;
mod elf;
mod event;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod host_port;
pub mod image;
mod log;
mod low_port;
mod machine;
mod names;
pub mod network;
mod node;
mod pod;
mod pods;
mod proxy;
mod quantity;
mod registration;
mod remains;
mod room;
pub mod runc;
pub mod sandbox;
mod serve;
mod stats;
mod stream;
mod sys;
mod sysctl;
mod tag;
pub mod tree;
mod usage;
mod volume;

pub use config::{AddressRange, NodeConfig};
pub use node::{Node, NodeError};
pub use remains::sweep as sweep_remains;
pub use sandbox::{Capabilities, sandbox_entry};
pub use serve::Body;
