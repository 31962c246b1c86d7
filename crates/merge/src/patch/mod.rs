//! Patches that know nothing of types: JSON patch and JSON merge patch.

mod error;
mod json;
mod merge;

pub use error::PatchError;
pub use json::json_patch;
pub use merge::merge_patch;
