//! Thousands of Pods on nodes that only pretend: from Deployments to all of them ready.

use anyhow::Result;
use clap::Args;

use super::control_plane::{ControlPlane, Real};
use super::programs::Programs;
use super::rounds::{Results, number};
use super::server::Side;
use super::table;

/// Pods of one Deployment.
const REPLICAS: usize = 100;

/// Options of `bench workloads`.
#[derive(Args)]
pub(crate) struct Options {
    /// How often it is measured on each side, in turns.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many Deployments, of 100 Pods each.
    #[arg(long, default_value_t = 100)]
    deployments: usize,
    /// How many nodes.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// Use the programs as they were built last.
    #[arg(long)]
    no_build: bool,
}

/// Measures both sides and prints what came out.
pub(super) fn run(options: &Options) -> Result<()> {
    let (programs, real) = (Programs::find(!options.no_build)?, Real::find()?);
    println!("{}", Programs::describe());
    println!("{} Deployments of {REPLICAS} Pods, {} nodes", options.deployments, options.nodes);
    let (mut results, count) = (Results::default(), options.deployments.to_string());
    for round in 1..=options.rounds {
        for side in [Side::Windlass, Side::Real] {
            eprintln!("round {round} of {}: {side:?}", options.rounds);
            let cluster = ControlPlane::start(&programs, &real, side, options.nodes)?;
            let cpu = cluster.cpu()?;
            let load = ["pods", "--deployments", &count, "--replicas", &REPLICAS.to_string()];
            let times = cluster.server.load.run(&load)?;
            let values = match side {
                Side::Windlass => &mut results.windlass,
                Side::Real => &mut results.real,
            };
            let mut push = |name: &str, value: f64| values.entry(name.to_owned()).or_default().push(value);
            push("pods_cpu_s", cluster.cpu()? - cpu);
            push("pods_ready_s", number(&times, "all_ready_s")?);
            push("pods_available_s", number(&times, "all_available_s")?);
            push("pods_mb", cluster.memory()? / 1e6);
        }
    }
    println!("\n{}", table::text(&results));
    println!("{}", table::json(&results));
    Ok(())
}
