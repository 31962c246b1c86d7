//! The audit log: who did what, a line of JSON for each request.

mod content;
mod event;
mod log;
mod notes;
mod policy;

pub(crate) use content::{of_request, of_response};
pub(crate) use event::{AUDIT_ID, Outcome, Request as AuditedRequest};
pub use log::{AuditLog, AuditLogError};
pub(crate) use notes::{annotate, name, noted};
pub(crate) use policy::Level;
pub use policy::{Policy, PolicyError};
