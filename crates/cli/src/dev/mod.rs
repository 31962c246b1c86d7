//! The loop of `windlass dev`: sources, builds, the operator's process, its resources, and one screen for all.

pub(crate) mod attached;
pub(crate) mod board;
pub(crate) mod compile;
pub(crate) mod course;
pub(crate) mod entry;
pub(crate) mod install;
pub(crate) mod narrator;
pub(crate) mod nodes;
pub(crate) mod process;
pub(crate) mod resources;
pub(crate) mod samples;
pub(crate) mod screen;
pub(crate) mod sources;
