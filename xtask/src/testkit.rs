//! The test kit: its gallery of bugs, and what its runs cost.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::test::cargo;
use crate::workspace::root;

const PAGE: &str = "docs/gallery.md";
const HEAD: &str = "# The gallery of bugs

Small reconcilers with one bug each, of a class that was reported for a real operator, and what [exploration](explore.md)
and [campaigns](campaigns.md) make of them. `cargo xtask testkit gallery` writes this page, all of it in one run. Plans are tried one of each
class in turn, on all threads, until something is found; of the fixed reconcilers a sample of all classes, or all with `WINDLASS_PLANS=all`.

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
        /// With an optimised build, which takes time to make and runs several times as fast.
        #[arg(long)]
        release: bool,
    },
    /// Measure what a run costs, and whether its schedule is the same every time, byte for byte.
    Measure {
        /// How many runs are compared.
        #[arg(long, default_value_t = 1000)]
        runs: usize,
        /// With an unoptimised build, which takes less time to make.
        #[arg(long)]
        debug: bool,
    },
}

/// The `testkit` task.
pub(crate) fn run(testkit: &Testkit) -> Result<()> {
    match testkit {
        Testkit::Gallery { bugs, release } => gallery(bugs, *release),
        Testkit::Measure { runs, debug } => {
            let mut measure = example(!debug);
            let status = measure.args(["measure", &runs.to_string()]).status().context("cannot start cargo")?;
            if !status.success() {
                bail!("a plan has several schedules, or a fixed reconciler is accused: see above");
            }
            Ok(())
        }
    }
}

/// The program of the gallery, before its arguments.
fn example(is_optimised: bool) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "windlass-testkit", "--example", "gallery"]);
    command.args(is_optimised.then_some("--release")).arg("--").env("RUST_BACKTRACE", "0");
    command
}

fn gallery(bugs: &[String], is_optimised: bool) -> Result<()> {
    let output = example(is_optimised).args(bugs).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
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
