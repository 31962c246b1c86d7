//! The Kubernetes API over the store and the table of kinds.

pub mod admission;
pub mod auth;
pub mod bootstrap;
mod cel;
mod codec;
mod crd;
mod discovery;
mod error;
mod jsonpath;
mod object;
mod openapi;
mod query;
mod rest;
mod reviews;
pub mod server;
mod strategy;
pub mod system;
mod table;

pub use error::{ApiError, Cause, Details, Subject};
