//! The journal of decisions: for each object, why it was looked at, what was seen, decided and done, and what comes next.
//!
//! It is for whoever asks why. It holds names, versions, paths of fields, codes and reasons, and the words that an operator
//! itself puts into conditions and events; it never holds what is in an object.

mod book;
mod page;
mod present;
mod record;
mod words;

pub use book::{OBJECTS_MAX, RUNS_PER_OBJECT_MAX, Runs};
pub use page::{History, Page, Question, Replica, Served};
pub use present::{is_recorded, subject};
pub use record::{
    CALLS_MAX, FIELDS_MAX, Happened, Made, Next, Run, SEEN_MAX, Seen, Subject, TRIGGERS_MAX, Trigger, Turn,
};

pub(crate) use page::HISTORIES_MAX;
pub(crate) use present::{Ended, Present, called, changed, concluded, decided, is_failure_told, named, saw, trace};
pub(crate) use words::{of_api, of_error};
