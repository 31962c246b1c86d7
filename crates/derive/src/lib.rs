//! The resource derive.
