//! What an operator is, as values and traits.

mod event;

pub use event::{Event, Severity};
