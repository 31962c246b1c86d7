//! Tasks of the project: `cargo xtask TASK`.

mod generate;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Tasks of the project")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Generate the tables of kinds from the pinned Kubernetes release
    Generate(generate::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Generate(arguments) => generate::run(&arguments),
    }
}
