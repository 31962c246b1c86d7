//! What `windlass chaos` understands and shows.

mod aim;
mod manifests;
mod table;

pub(crate) use aim::{Aim, choose, side};
pub(crate) use manifests::manifests;
pub(crate) use table::table;
