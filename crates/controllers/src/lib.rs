//! The built-in controllers of the embedded cluster, written on the runtime like any operator.

mod claim;
mod deployment;
mod endpoints;
mod owners;
mod percent;
mod pods;
mod quantity;
mod replicaset;
mod scheduler;
