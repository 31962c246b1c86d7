//! The built-in controllers of the embedded cluster, written on the runtime like any operator.

mod actor;
mod adoption;
mod census;
mod claim;
mod controllers;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod fake_node;
mod garbage;
mod hash;
mod history;
mod job;
mod kinds;
mod namespace;
mod owners;
mod percent;
mod pod_gc;
mod pods;
mod quantity;
mod quota;
mod recheck;
mod replicaset;
mod revisions;
mod scheduler;
mod service_account;
mod set;
mod statefulset;
mod template;
mod token_secret;

pub use controllers::{Controllers, run};
pub use set::{Name, Set};
