//! The gallery of the test kit: every bug and every fixed reconciler, explored.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::workspace::root;

const PAGE: &str = "docs/gallery.md";
const HEAD: &str = "# The gallery of bugs

Small reconcilers with one bug each, of a class that was reported for a real operator, and what [exploration](explore.md)
makes of them. `cargo xtask testkit gallery` writes this page. Plans are tried one of each class in turn, on all threads,
until something is found; of the fixed reconcilers 120 plans each, of all classes, and all of them with `WINDLASS_PLANS=all`.

The kit and the bugs were made together: oracles, scenarios and classes were changed after bugs had been missed, so that all are
found says little of bugs that nobody has thought of. A link shows a report of a similar symptom, not always the same cause.

";

/// What is done with the test kit.
#[derive(Subcommand)]
pub(crate) enum Testkit {
    /// Explore the gallery of bugs, print what was found by what, and write the page of the book.
    Gallery {
        /// Only these bugs, by the names of `gallery/table.rs`; the page is not written then.
        bugs: Vec<String>,
    },
}

/// The `testkit` task.
pub(crate) fn run(testkit: &Testkit) -> Result<()> {
    let Testkit::Gallery { bugs } = testkit;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root())
        .args(["run", "--quiet", "--package", "windlass-testkit", "--example", "gallery", "--"])
        .args(bugs)
        .env("RUST_BACKTRACE", "0")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let text = String::from_utf8(output.stdout).context("the gallery prints text")?;
    print!("{text}");
    if !output.status.success() {
        bail!("a bug was not found, or a fixed reconciler is accused: see above");
    }
    if bugs.is_empty() {
        fs::write(root().join(PAGE), format!("{HEAD}{text}")).with_context(|| format!("cannot write {PAGE}"))?;
    }
    Ok(())
}
