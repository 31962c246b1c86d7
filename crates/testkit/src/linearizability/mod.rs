//! Whether an API server is linearizable, by the revisions in its answers.
//!
//! Many clients write and read a few objects; every operation notes when it was begun and when it was answered. Every
//! answer carries a revision, so the order is known and nothing has to be searched for: the check takes as long as
//! sorting. It finds reads that are older than what was acknowledged before, reads of what was not yet written, updates
//! that overwrite what they have not seen, lists that never were, and revisions that go back.
//!
//! ```no_run
//! # async fn example(client: kube::Client) {
//! use windlass_testkit::linearizability::{Workload, check};
//!
//! let history = Workload { clients: 16, operations: 100, ..Workload::default() }.run(&client).await;
//! check(&history).unwrap();
//! # }
//! ```

mod check;
mod history;
mod workload;

pub use check::{Violation, check};
pub use history::{Action, History, Operation, Outcome, Version};
pub use workload::Workload;
