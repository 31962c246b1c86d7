//! What the pinned Kubernetes says of CEL, recorded anew: its functions, and its judgement on the expressions of the
//! fixtures.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools;
use crate::workspace::{root, run as run_command};

const CEL: &str = "crates/apiserver/src/cel";

/// The `record` task.
pub(crate) fn run() -> Result<()> {
    functions()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run_command(
        Command::new(cargo)
            .current_dir(root())
            .args(["run", "--quiet", "--package", "windlass-differential", "--"])
            .arg("--kube-apiserver")
            .arg(tools::kube_apiserver()?)
            .arg("--etcd")
            .arg(tools::etcd()?)
            .arg("--record")
            .arg(root().join(CEL).join("fixtures")),
    )
}

/// Asks upstream's own library which functions there are.
fn functions() -> Result<()> {
    let answer = Command::new(tools::go()?)
        .current_dir(root().join("tools/cel"))
        .args(["run", "."])
        .output()
        .context("cannot run Go")?;
    if !answer.status.success() {
        bail!("the functions could not be listed: {}", String::from_utf8_lossy(&answer.stderr));
    }
    fs::write(root().join(CEL).join("functions.txt"), &answer.stdout)?;
    println!("recorded {CEL}/functions.txt");
    Ok(())
}
