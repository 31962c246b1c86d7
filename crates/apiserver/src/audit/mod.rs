//! The audit log: who did what, a line of JSON for each request.

mod event;
mod log;
mod policy;

pub(crate) use event::{AUDIT_ID, Request as AuditedRequest};
pub use log::{AuditLog, AuditLogError};
pub use policy::{Policy, PolicyError};
