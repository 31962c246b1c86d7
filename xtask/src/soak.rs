//! What takes too long for every run of the tests: the same tests, many more rounds.

use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::tools;
use crate::workspace::{root, run as run_command};

/// What is done for a long time.
#[derive(Subcommand)]
pub(crate) enum Soak {
    /// Kill the cluster with -9 in the middle of a storm of writes, and look for what was acknowledged.
    Durability {
        /// How often.
        #[arg(long, default_value_t = 300)]
        rounds: u32,
    },
    /// Kill the cluster with -9 while Pods come, run and go, and look for their processes.
    Survival {
        /// How many Pods.
        #[arg(long, default_value_t = 100)]
        pods: u32,
        /// How often.
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// Let 64 clients write and read a few objects at once while the cluster is killed with -9, and check that all of them see
    /// one order.
    Linearizability {
        /// How often it is killed.
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// Let a CronJob run every minute by the machine's clock, and print how late each of its programs started.
    Cron {
        /// How many minutes.
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
}

/// The `soak` task.
pub(crate) fn run(soak: &Soak) -> Result<()> {
    let (test, pods, rounds) = match soak {
        Soak::Durability { rounds } => ("durability", 0, rounds),
        Soak::Survival { pods, rounds } => ("survival", *pods, rounds),
        Soak::Linearizability { rounds } => ("linearizability", 0, rounds),
        Soak::Cron { rounds } => ("cron", 0, rounds),
    };
    // What makes no sense for a short time is no part of the tests otherwise.
    let ignored: &[&str] = if matches!(soak, Soak::Cron { .. }) { &["--ignored"] } else { &[] };
    run_command(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(root())
            .args(["test", "--package", "windlass-cli", "--test", test, "--", "--nocapture"])
            .args(ignored)
            .env("WINDLASS_TEST_KUBECTL", tools::install()?)
            .env("WINDLASS_PODS", pods.to_string())
            .env("WINDLASS_ROUNDS", rounds.to_string()),
    )
}
