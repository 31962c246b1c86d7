//! Admission: functions that fill in and refuse what people write, before it is stored.

mod hook;
mod request;
mod review;
mod verdict;
mod window;

pub use hook::{Admitted, DecideError, FailurePolicy, Hook, Task};
pub use request::{Operation, Request};
pub use review::{Answer, Question, Review};
pub use verdict::Verdict;
pub use window::Window;
