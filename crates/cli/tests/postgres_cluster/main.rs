//! PostgreSQL clusters on real servers: installed, switched over, killed, frozen and scaled, under a writer that knows what was
//! acknowledged to it. `cargo xtask scenario` runs all of them; the tests run those that take a minute together.

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../windlass/tests/storage/server.rs"]
mod server;

mod backup;
mod deletion;
mod failover;
mod full;
mod install;
mod restore;
mod scale;
mod stage;
mod storage;
mod upgrade;
mod verify;
mod writer;
