//! Policies of admission: expressions that refuse or change what is written, where a binding says so.

mod binding;
mod invocation;
mod mutation;
mod parameters;
mod policy;
mod status;
mod type_check;
mod validation;

pub(super) use binding::Binding;
pub(super) use invocation::{Bound, Policies, authority};
pub(super) use policy::Policy;
pub(crate) use status::keep_status;
