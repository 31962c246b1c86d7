//! Operators as handlers: functions that run when a resource is created, changes, is there, or is to go.
//!
//! What is to run is one decision ([`decide`]) from the resource, what is remembered of it, the time and the declared
//! handlers. The engine runs one handler at a time for a resource: it writes down that it begins, runs it, and writes down
//! how it ended. So a crash repeats at most the one that was at work, and whoever serves the resource next goes on from there.

mod answer;
mod context;
mod daemon;
mod decide;
mod declare;
mod engine;
mod progress;
mod record;
mod report;
mod retry;
mod seen;
mod session;

pub use answer::{Answer, Failure, Report};
pub use context::HandlerContext;
pub use decide::Cause;
pub use declare::{Changed, Handlers};
pub use engine::HandlerEngine;
pub use retry::Retry;
