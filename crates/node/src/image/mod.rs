//! Images: where a container's files, command and environment come from.

mod apt;
mod archive;
mod build;
mod debian;
mod installed;
mod layer;
mod passwd;
mod recipe;
mod reference;
mod removal;
mod store;

pub use build::{Build, BuildError};
pub use reference::{Reference, ReferenceError};
pub use removal::Removal;
pub use store::{Image, ImageConfig, ImageError, ImageStore, PullPolicy, StoredImage};

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use archive::add as add_archive;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use layer::Budget;
pub(crate) use passwd::{find_groups, find_user};
pub(crate) use removal::Hold;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use store::Record;

/// Told about each step of making an image.
pub type Progress<'a> = &'a (dyn Fn(String) + Send + Sync);
