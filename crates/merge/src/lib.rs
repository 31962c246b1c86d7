#![doc = include_str!("../README.md")]

mod fields;
pub mod managed;
mod openapi;
mod order;
mod patch;
mod path;
mod shape;
pub mod strategic;
pub mod typed;

pub use fields::{FieldSet, FieldsError};
pub use openapi::OpenApiShape;
pub use patch::{PatchError, json_patch, merge_patch};
pub use path::{KeyValue, Path, PathElement, PathElementError, path_text};
pub use shape::{ListType, MapType, Member, PatchStrategy, Shape, ValueType};
