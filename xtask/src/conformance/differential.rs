//! `windlass-differential`, with the programs that it compares built first.

use std::process::{Command, Stdio};

use anyhow::Result;
use clap::Args;

use crate::subject::Subject;
use crate::tools;
use crate::workspace::{root, run as run_command};

/// What is handed on to the comparison.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    subject: Subject,
    /// Arguments of the comparison: `--requests N`, `--seed N`, `--only RESOURCE`, `--show N`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds and compares.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (etcd, server) = (tools::etcd()?, tools::kube_apiserver()?);
    let assets = root().join("target/differential");
    run_command(Command::new(options.subject.program()?).arg("envtest").arg(&assets).stdout(Stdio::null()))?;
    run_command(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(root())
            .args(["run", "--quiet", "--package", "windlass-differential", "--", "--windlass"])
            .arg(assets.join("kube-apiserver"))
            .arg("--kube-apiserver")
            .arg(server)
            .arg("--etcd")
            .arg(etcd)
            .args(&options.arguments),
    )
}
