//! The Kubernetes API over the store and the table of kinds.

mod address;
pub mod admission;
mod aggregation;
pub mod audit;
pub mod auth;
pub mod bootstrap;
mod cel;
mod codec;
mod crd;
mod discovery;
mod error;
mod flow;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod handler;
mod jsonpath;
mod object;
mod openapi;
mod proxy;
mod query;
pub mod registry;
mod request;
mod rest;
mod reviews;
pub mod server;
mod state;
mod strategy;
pub mod system;
mod table;
mod upgrade;
mod upkeep;
mod webhook;

pub use address::{AddressRange, AddressRangeError};
pub use aggregation::FrontProxy;
pub use codec::{Body, BoxError, full};
pub use error::{ApiError, Cause, Details, Subject};
pub use rest::{NodeProxy, NodeProxyError, PodPlace};
pub use state::{Api, Config};
