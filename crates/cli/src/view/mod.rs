//! What people see: columns, colours, progress.

pub(crate) mod columns;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod progress;
pub(crate) mod readiness;
