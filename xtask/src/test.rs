//! The whole check of the project: what CI runs, and what a newcomer runs first.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{root, run as run_command};
use crate::{tidy, tools};

/// What of the check to leave out.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run the tests alone, without formatting and lints.
    #[arg(long)]
    tests_only: bool,
    /// Only the tests of this package.
    #[arg(short, long)]
    package: Option<String>,
}

/// Installs, checks, tests, counts.
pub(crate) fn run(options: &Options) -> Result<()> {
    let kubectl = tools::install()?;
    if !options.tests_only {
        step("formatting", cargo().args(["fmt", "--all", "--check"]))?;
        step("lints", cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
        println!("== tidy");
        tidy::run()?;
    }
    println!("== tests");
    let mut tests = cargo();
    tests.arg("test").args(["--no-fail-fast"]).env("WINDLASS_TEST_KUBECTL", kubectl);
    match &options.package {
        Some(package) => tests.args(["--package", package]),
        None => tests.arg("--workspace"),
    };
    let (counts, passed) = count(&mut tests)?;
    println!("{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.skipped);
    if !passed || counts.failed > 0 {
        bail!("tests failed; the names are above, after each `failures:`");
    }
    Ok(())
}

/// cargo, at the root of the workspace.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

fn step(name: &str, command: &mut Command) -> Result<()> {
    println!("== {name}");
    run_command(command)
}

/// How many tests ended how.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    skipped: u32,
}

/// Runs the tests, shows their output as it comes, and adds up the closing lines.
pub(crate) fn count(command: &mut Command) -> Result<(Counts, bool)> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let output = child.stdout.take().expect("stdout was asked for");
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        add(&mut counts, &line);
    }
    Ok((counts, child.wait()?.success()))
}

/// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn add(counts: &mut Counts, line: &str) {
    let Some(result) = line.strip_prefix("test result: ") else { return };
    let number = |word: &str| -> u32 {
        let before = result.split(word).next().unwrap_or_default().trim_end();
        before.rsplit([' ', ';']).next().and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    counts.passed += number(" passed");
    counts.failed += number(" failed");
    counts.skipped += number(" ignored");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_added_up() {
        let mut counts = Counts::default();
        add(
            &mut counts,
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.1s",
        );
        add(&mut counts, "test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out");
        add(&mut counts, "running 3 tests");
        assert_eq!(counts, Counts { passed: 14, failed: 5, skipped: 1 });
    }
}
