//! The acceptance scenarios of the PostgreSQL operator, on real servers: what was measured is printed.

use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use crate::tools;
use crate::workspace::{root, run as run_command};

/// The scenarios: the name, the test, and what it shows.
const SCENARIOS: [(&str, &str, &str); 14] = [
    ("P1", "install::p1_", "three servers from nothing, the operator killed twice: the data is made once"),
    ("P3", "failover::a_primary_", "a planned switchover, then the primary killed, under a writer"),
    (
        "P4",
        "upgrade::p4_",
        "settings and a build with which no server starts, under a writer: taken back, and not tried again",
    ),
    ("P7", "backup::p7_", "backups on demand and by schedule, cut off, late, and thinned out, under a writer"),
    ("P7-full", "full::p7full_", "the storage of backups without room, under a writer, and with room again"),
    ("P8", "restore::p8_", "a mistaken DELETE undone by a restore to the second before, and one from storage alone"),
    ("P8-s3", "restore::p8s3_", "the same with object storage, of which a real server runs"),
    ("P8-encrypted", "restore::p8encrypted_", "the same with object storage in which everything is encrypted"),
    ("P9", "verify::p9_", "a backup restored to see that it can be, and again when a segment of the log is damaged"),
    ("P9-encrypted", "verify::p9encrypted_", "the same with object storage in which everything is encrypted"),
    ("P10", "failover::p10_", "the primary frozen, thawed and killed, under a writer"),
    ("P11", "failover::p11_", "the primary and a standby frozen: nobody is promoted who may lack a commit"),
    ("P13", "scale::p13_", "from three servers to five and to two, under a writer"),
    (
        "P16",
        "deletion::p16_",
        "a cluster that is let go, taken over, deleted with its data kept, and deleted as a whole",
    ),
];

/// Options of the `scenario` task.
#[derive(Args)]
pub(crate) struct Options {
    /// The scenario, such as P10; `all` runs each.
    name: String,
}

/// The `scenario` task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let is_asked = |name: &str| options.name == "all" || options.name.eq_ignore_ascii_case(name);
    let asked: Vec<_> = SCENARIOS.iter().filter(|(name, ..)| is_asked(name)).collect();
    if asked.is_empty() {
        let names: Vec<&str> = SCENARIOS.iter().map(|(name, ..)| *name).collect();
        bail!("there is no scenario {}: name one of {}, or all", options.name, names.join(", "));
    }
    let kubectl = tools::install()?;
    for (name, test, about) in asked {
        println!("\n{name}: {about}");
        run_command(
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .current_dir(root())
                .args(["test", "--quiet", "--package", "windlass-cli", "--test", "postgres_cluster", "--"])
                .args(["--nocapture", "--include-ignored", test])
                .env("WINDLASS_TEST_KUBECTL", &kubectl),
        )?;
    }
    Ok(())
}
