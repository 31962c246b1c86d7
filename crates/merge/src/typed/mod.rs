//! Values seen through their shapes: comparing, merging and removing by what a type says of its maps and lists.

mod check;
mod compare;
mod item;
mod merge;
mod node;
mod remove;

pub use check::{Cause, Problem, check};
pub use compare::{Comparison, compare};
pub use item::ItemError;
pub use merge::merge;
pub use remove::remove_items;

pub(crate) use node::{Node, is_identified, node};
