//! The catalogue of behaviours that hold for whatever runs on this runtime: each is a test on a cluster in this process, and
//! its name says what holds.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod clusters;
mod contrast;
mod handlers;
mod journal;
mod loops;
mod namespaces;
mod notes;
mod own_writes;
mod replicas;
mod scale;
mod sources;
mod switches;
mod traces;
mod watches;
mod workers;
