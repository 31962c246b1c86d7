//! Why an object is not ready: facts are gathered, findings follow from them, and both are shown.

mod claim;
mod deletion;
mod facts;
mod finding;
mod gather;
mod graph;
mod operator;
mod pod;
mod replicas;
mod show;
mod workload;

pub(crate) use finding::{Depth, Finding, diagnose};
pub(crate) use gather::gather;
pub(crate) use show::{as_json, as_text};

#[cfg(test)]
mod tests;
