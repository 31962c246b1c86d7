//! Permissions: derived from what an operator declares, compared with what it was seen to do.
//!
//! A test of an operator notes the rights that its calls took, and holds them against the role that `rbac` prints:
//!
//! ```no_run
//! # fn end_of_a_test(app: &dyn windlass::Program, manager: &windlass::runtime::Manager) {
//! use windlass::rbac::{Comparison, Recording};
//!
//! let recording = Recording::of(app, manager.tap().rights());
//! recording.save().unwrap(); // For `my-operator rbac --recorded`.
//! Comparison::of(app, &[recording]).assert_enough();
//! # }
//! ```

mod comparison;
mod grants;
mod need;
mod recording;

pub use comparison::{Comparison, Missing};
pub use grants::Grants;
pub use need::{Need, Part, Scope};
pub use recording::{Recording, RecordingError};
pub use windlass_runtime::tap::{Place, Right, Rights, Uses};

pub(crate) use grants::covers;
pub(crate) use need::{Basis, HOLDS, MOVES, REPORTS, asked, declared, lead, moves, rules, visit, webhooks};
