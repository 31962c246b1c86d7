//! The kind `Restore`: a new resource from a backup, never over one that is there.

mod control;
mod decide;
mod kind;

pub use control::{RestoreControl, restores};
pub use kind::{Restore, RestoreSource, RestoreSpec, RestoreStatus, RestoreStorage};
