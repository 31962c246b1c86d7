//! The names of the cluster: a small name server for its domain, and what Pods are told about it.

mod message;
mod resolver;
mod server;
mod service;
mod zone;

pub(crate) use resolver::{Cluster, Resolver};
pub(crate) use server::{NameServer, begin};
