//! The schema derive: schemars' own, with what only Kubernetes knows.

mod constraints;
mod copy;
mod shape;

pub(crate) use copy::expand;
