//! Tasks of the project: generated tables, tests, tidy checks, tools, comparisons.

mod bench;
mod cluster;
mod compare;
mod conformance;
mod fuzz;
mod generate;
mod kubernetes;
mod record;
mod scenario;
mod soak;
mod subject;
mod test;
mod testkit;
mod tidy;
mod tools;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure Windlass beside the real thing and print how many times better it is.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Run the same operator, written with several toolkits, through the same script, and print how each did.
    #[command(subcommand)]
    Compare(compare::Compare),
    /// Run a suite of another project against Windlass and print what passed and failed.
    #[command(subcommand)]
    Conformance(conformance::Suite),
    /// Feed every decoder with inputs that a fuzzer makes up, and say what breaks.
    Fuzz(fuzz::Options),
    /// Generate the tables of kinds from the pinned Kubernetes release.
    Generate(generate::Options),
    /// Start a control plane of the real Kubernetes on this machine, end it, or run the tests of operators on one.
    #[command(subcommand)]
    Kubernetes(kubernetes::Kubernetes),
    /// Ask the pinned kube-apiserver again what it says of CEL, and write it into the fixtures of windlass-apiserver.
    Record,
    /// Run the acceptance scenarios of the PostgreSQL operator and print what was measured.
    Scenario(scenario::Options),
    /// Run a test for a long time.
    #[command(subcommand)]
    Soak(soak::Soak),
    /// Install what the tests need, then run formatting, lints, tidy and every test, and print the counts.
    Test(test::Options),
    /// Explore the gallery of bugs of the test kit, or measure its runs.
    #[command(subcommand)]
    Testkit(testkit::Testkit),
    /// Check what the compiler does not: file lengths, module docs, the direction of crates, names.
    Tidy,
    /// Install what the tests need, or the tools named, and print where they are.
    Tools(tools::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Bench(bench) => bench::run(&bench),
        Task::Compare(compare) => compare::run(&compare),
        Task::Conformance(suite) => conformance::run(&suite),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Generate(options) => generate::run(&options),
        Task::Kubernetes(command) => kubernetes::run(&command),
        Task::Record => record::run(),
        Task::Scenario(options) => scenario::run(&options),
        Task::Soak(soak) => soak::run(&soak),
        Task::Test(options) => test::run(&options),
        Task::Testkit(task) => testkit::run(&task),
        Task::Tidy => tidy::run(),
        Task::Tools(options) => tools::run(&options),
    }
}
