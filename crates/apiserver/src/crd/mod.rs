//! CustomResourceDefinitions and the objects of their kinds.

pub(crate) mod definition;
mod kind;
mod scale;
pub(crate) mod version;

pub(crate) use kind::{Conversion, CustomKind, KindError, kinds};
pub(crate) use scale::ScalePaths;
