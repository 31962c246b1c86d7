//! The archive of a cluster: the log, segment by segment, and base backups, in storage outside of the members.
//!
//! An archive belongs to one resource (by its uid) and one set of data (by its system identifier): so no cluster ever writes into
//! what another one left, also one of the same name, or one that was restored from it.

mod base;
mod command;
mod layout;
mod manifest;
mod segment;

pub(crate) use base::{BASE, LOG, MANIFEST};
pub(crate) use command::{COMMAND, main};
pub(crate) use layout::{ARCHIVE, Layout, ORIGIN, RECOVERY, STORAGE, prefix};
