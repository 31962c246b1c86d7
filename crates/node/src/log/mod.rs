//! Logs of containers: files in the format of the container runtime interface, rotated, and how they are read.

mod line;
mod reader;
mod writer;

pub(crate) use line::{Stream, parse};
pub(crate) use reader::{LogOptions, read};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use writer::written;
pub(crate) use writer::{Log, Logs, collect, files};
