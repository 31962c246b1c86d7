//! Fuzzing of everything that bytes from outside reach: each target for a while, one after the other.

mod corpus;
mod outcome;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools;
use crate::workspace::{root, run as run_command};
use outcome::Outcome;

/// Longer inputs say nothing that shorter ones do not; what only size makes bad has tests of its own.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// An input that takes longer is a finding. It is far more than any needs, even on a machine that does other things.
const INPUT_SECONDS_MAX: u32 = 10;
/// A process that needs more memory is a finding.
const MEMORY_MEBIBYTES_MAX: u32 = 2048;
/// The program with all targets, and where it is told which one to run.
const PROGRAM: &str = "decoders";
const TARGET_VARIABLE: &str = "WINDLASS_FUZZ_TARGET";

/// Options of `fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The targets; all if none is named.
    targets: Vec<String>,
    /// How long each of them runs.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Run this one input again, instead of looking for others.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// List the targets.
    #[arg(long)]
    list: bool,
}

/// The `fuzz` task.
pub(crate) fn run(options: &Options) -> Result<()> {
    let targets = targets(&options.targets)?;
    if options.list {
        targets.iter().for_each(|target| println!("{}", target.name));
        return Ok(());
    }
    let program = build()?;
    if let Some(input) = &options.input {
        let [target] = targets.as_slice() else { bail!("name the one target that the input is for") };
        return run_command(command(&program, target).arg(input));
    }
    corpus::fill(&folder())?;
    let mut rows = Vec::new();
    for target in &targets {
        let outcome = fuzz(&program, target, options.seconds)?;
        println!("{:<12} {outcome}", target.name);
        rows.push((&target.name, outcome));
    }
    let found: Vec<_> =
        rows.iter().filter(|(_, outcome)| outcome.is_finding()).map(|(name, _)| name.as_str()).collect();
    if found.is_empty() {
        println!("\nno findings in {} targets of {} s", rows.len(), options.seconds);
        return Ok(());
    }
    let place = folder().join("artifacts");
    bail!("findings in {}; inputs and logs are in {}", found.join(", "), place.display())
}

fn folder() -> PathBuf {
    root().join("fuzz")
}

/// What is fuzzed, and where its seeds are.
struct Target {
    name: String,
    seeds: PathBuf,
}

/// The targets by name: each has a folder of seeds, which a test of the crate that it belongs to holds in step with the
/// code.
fn targets(wanted: &[String]) -> Result<Vec<Target>> {
    let mut known = Vec::new();
    for owner in entries(&folder().join("seeds"))? {
        for seeds in entries(&owner)? {
            let name = seeds.file_name().unwrap_or_default().to_string_lossy().into_owned();
            known.push(Target { name, seeds });
        }
    }
    known.sort_by(|left, right| left.name.cmp(&right.name));
    if let Some(unknown) = wanted.iter().find(|name| !known.iter().any(|target| target.name == **name)) {
        let names: Vec<_> = known.into_iter().map(|target| target.name).collect();
        bail!("there is no target {unknown}; these are there: {}", names.join(" "));
    }
    known.retain(|target| wanted.is_empty() || wanted.contains(&target.name));
    Ok(known)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// Builds the program, with the toolchain of the project: the sanitizer alone asks for a switch of the unstable ones.
fn build() -> Result<PathBuf> {
    let mut build = Command::new(tools::cargo_fuzz()?);
    build
        .current_dir(folder())
        .args(["build", "--sanitizer", "address", PROGRAM])
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("CARGO_TARGET_DIR");
    run_command(&mut build)?;
    let programs = fs::read_dir(folder().join("target"))?.flatten().map(|entry| entry.path().join("release"));
    let program = programs.map(|folder| folder.join(PROGRAM)).find(|program| program.is_file());
    program.context("the fuzz program was built, but is not there")
}

fn command(program: &Path, target: &Target) -> Command {
    let mut command = Command::new(program);
    command
        .env(TARGET_VARIABLE, &target.name)
        .env("RUST_BACKTRACE", "1")
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MEBIBYTES_MAX}"));
    command
}

/// Runs one target for a while.
fn fuzz(program: &Path, target: &Target, seconds: u32) -> Result<Outcome> {
    let name = &target.name;
    let (corpus, artifacts) = (folder().join("corpus").join(name), folder().join("artifacts").join(name));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let log = artifacts.join("log");
    let output = File::create(&log)?;
    let status = command(program, target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-dict={}", folder().join("dictionary.txt").display()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .arg(&corpus)
        .arg(&target.seeds)
        .stdout(output.try_clone()?)
        .stderr(output)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok(Outcome::read(&String::from_utf8_lossy(&fs::read(&log)?), status.success()))
}
