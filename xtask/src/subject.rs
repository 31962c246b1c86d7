//! The program that is tested.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::workspace::{root, run, target};

/// Which windlass is tested.
#[derive(Args)]
pub(crate) struct Subject {
    /// The windlass to use, instead of one built now.
    #[arg(long, value_name = "FILE")]
    windlass: Option<PathBuf>,
}

impl Subject {
    /// The program: the one that was named, or this checkout's, built now.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        if let Some(path) = &self.windlass {
            return path.canonicalize().with_context(|| format!("no {}", path.display()));
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        run(Command::new(cargo).current_dir(root()).args(["build", "--quiet", "--package", "windlass-cli"]))?;
        Ok(target().join("debug/windlass"))
    }
}
