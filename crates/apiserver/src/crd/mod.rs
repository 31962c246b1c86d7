//! CustomResourceDefinitions and the objects of their kinds.

mod cleanup;
mod conditions;
mod controller;
pub(crate) mod conversion;
pub(crate) mod definition;
mod embedded;
mod kind;
mod names;
pub(crate) mod resource;
mod scale;
pub(crate) mod strategy;
pub(crate) mod validate;
mod validate_version;
pub(crate) mod version;

pub(crate) use controller::{replace, restore, run};
pub(crate) use kind::CustomKind;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use kind::kinds;
