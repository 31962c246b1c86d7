//! Windlass beside the real thing, on this machine and in one run.

mod control_plane;
mod disk;
mod goals;
mod growth;
mod load;
mod node;
mod operators;
mod process;
mod programs;
mod rounds;
mod server;
mod table;
mod workloads;

use anyhow::Result;
use clap::{Args, Subcommand};

/// What is compared.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The API server, with the real kube-apiserver and etcd.
    Apiserver(Options),
    /// Controllers and scheduler, with the real ones: thousands of Pods on nodes that only pretend.
    Workloads(workloads::Options),
    /// Operators: the same work with several toolkits, on the real kube-apiserver.
    Operators(operators::Options),
    /// The node: hundreds of real Pods.
    Node(node::Options),
}

/// Options of `bench apiserver`.
#[derive(Args)]
pub(crate) struct Options {
    /// How often everything is measured on each side, in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// One round with a fifth of the requests and a tenth of the definitions.
    #[arg(long)]
    quick: bool,
    /// Measure only what has this in its name, such as `create`, `list`, `growth`.
    #[arg(long)]
    only: Option<String>,
    /// Use the programs as they were built last.
    #[arg(long)]
    no_build: bool,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Size {
    rounds: usize,
    /// Requests with one in flight; with more in flight there are more.
    requests: usize,
    objects: usize,
    definitions: usize,
    /// The largest number of objects whose growth is measured.
    growth: usize,
}

/// The `bench` task.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Apiserver(options) => apiserver(options),
        Bench::Workloads(options) => workloads::run(options),
        Bench::Operators(options) => operators::run(options),
        Bench::Node(options) => node::run(options),
    }
}

fn apiserver(options: &Options) -> Result<()> {
    let size = match options.quick {
        true => Size { rounds: 1, requests: 100, objects: 10_000, definitions: 200, growth: 10_000 },
        false => Size { rounds: options.rounds, requests: 500, objects: 10_000, definitions: 2_000, growth: 100_000 },
    };
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| name.contains(only) || only.contains(name));
    let programs = programs::Programs::find(!options.no_build)?;
    println!("{}", programs::Programs::describe());
    let mut results = rounds::measure(&programs, size, &wanted)?;
    if wanted("growth") {
        growth::measure(&programs, size, &mut results)?;
    }
    println!("\n{}", table::text(&results));
    println!("{}", table::json(&results));
    Ok(())
}
