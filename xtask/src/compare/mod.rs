//! Windlass next to other toolkits, from running code.

mod operators;

use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::{root, run as run_command};

/// What is compared.
#[derive(Subcommand)]
pub(crate) enum Compare {
    /// The memcached operator, written with Windlass, kubebuilder, Kopf and plain kube.
    Operators(operators::Options),
    /// What `kube::runtime::Controller` does where the catalogue of the runtime's behaviours says what ours does.
    Controllers,
}

/// The `compare` task.
pub(crate) fn run(compare: &Compare) -> Result<()> {
    match compare {
        Compare::Operators(options) => operators::run(options),
        Compare::Controllers => controllers(),
    }
}

/// The tests that document another controller: they are compiled with the others, and run only here.
fn controllers() -> Result<()> {
    run_command(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(root())
            .args(["test", "--package", "windlass-runtime", "--test", "behaviours", "contrast"])
            .args(["--", "--ignored", "--nocapture"])
            // A panic is a part of it.
            .env("RUST_BACKTRACE", "0"),
    )
}
