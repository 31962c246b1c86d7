//! Projects of operators: what `init` and `create api` write, and how a project is found again.

pub(crate) mod api;
mod files;
pub(crate) mod name;
pub(crate) mod project;
pub(crate) mod source;
mod template;
mod wiring;

pub(crate) use files::{format_all, write_new};
pub(crate) use template::{Extras, File, api_files, project_files};
pub(crate) use wiring::{ByHand, wire};
