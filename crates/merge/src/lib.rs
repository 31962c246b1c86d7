//! Field sets, typed merge, managed fields, strategic merge and JSON patches for Kubernetes objects.
//!
//! Knows neither HTTP nor storage: what a type looks like is passed in as a [`Shape`].

mod shape;

pub use shape::{ListType, MapType, PatchStrategy, Shape};
