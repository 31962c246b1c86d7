//! Campaigns: every property of a resource is changed and changed back, to every value that means something.

mod candidates;
mod change;
mod changes;
mod course;
mod meaning;
mod properties;
mod report;
mod runner;
mod texts;

pub use crate::lab::Change;
pub use report::{CampaignReport, Tried};
pub use runner::Campaign;
