//! Hundreds of real Pods on one node: how soon they run, and what it costs to keep them.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::process::{Family, load_average};
use super::programs::Programs;
use super::rounds::number;
use super::server::Server;

/// How long nothing is done while the cost of keeping the Pods is measured.
const STEADY: Duration = Duration::from_secs(30);

/// What is published of kubelet: the limits that Kubernetes' own node tests hold it to, on a node with 10 Pods
/// (`test/e2e_node/resource_usage_test.go` and `density_test.go` of the pinned release), and its default limit of Pods.
const KUBELET: [(&str, &str); 4] = [
    ("Pods per node", "110 by default"),
    ("start", "10 Pods at once: all within 25 s, half of them within 16 s"),
    ("steady CPU, 10 Pods", "kubelet up to 0.30 cores, the container runtime as much again (medians)"),
    ("memory, 10 Pods", "kubelet up to 200 MiB, the container runtime up to 400 MiB"),
];

/// Options of `bench node`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many Pods.
    #[arg(long, default_value_t = 500)]
    pods: usize,
    /// Use the programs as they were built last.
    #[arg(long)]
    no_build: bool,
}

/// Measures, and prints it next to what is published of kubelet.
pub(super) fn run(options: &Options) -> Result<()> {
    let programs = Programs::find(!options.no_build)?;
    let pods = options.pods.to_string();
    println!("{} cores, load {}", std::thread::available_parallelism().map_or(0, usize::from), load_average());
    let server = Server::windlass(&programs, true, &["--no-operators", "--max-pods", &pods])?;
    let family = || Family::of(&programs.windlass, server.process());
    let (idle, before) = (server.memory()?, family()?);
    let load = ["pods", "--deployments", "1", "--replicas", &pods, "--image", "host", "--", "/bin/sleep", "100000"];
    let times = server.load.run(&load)?;
    let (started, memory) = (family()?, server.memory()?);
    let (begin, _) = (family()?, std::thread::sleep(STEADY));
    let end = family()?;
    let (ready_s, per_s) = (number(&times, "all_ready_s")?, number(&times, "per_s")?);
    let start_cpu = started.cpu_s - before.cpu_s;
    let steady = (end.cpu_s - begin.cpu_s) / STEADY.as_secs_f64();
    let keepers = end.memory;
    let each = |total: f64| total / options.pods as f64;
    println!("\n| {} real Pods | Windlass |\n|---|--:|", options.pods);
    println!("| all ready after | {ready_s:.1} s ({per_s:.0} per second) |");
    println!("| CPU to start them | {start_cpu:.1} s ({:.0} ms each) |", each(start_cpu) * 1e3);
    println!("| steady CPU, over {} s | {steady:.3} cores |", STEADY.as_secs());
    println!(
        "| memory of API server, controllers, node | {:.0} MB ({:.0} MB without Pods) |",
        memory / 1e6,
        idle / 1e6
    );
    println!("| memory of what keeps the Pods | {:.0} MB ({:.0} KB each) |", keepers / 1e6, each(keepers) / 1e3);
    println!("\n| kubelet, published | |\n|---|---|");
    for (what, figure) in KUBELET {
        println!("| {what} | {figure} |");
    }
    let result = json!({
        "pods": options.pods, "ready_s": ready_s, "per_s": per_s, "start_cpu_s": start_cpu, "steady_cores": steady,
        "memory_mb": memory / 1e6, "idle_mb": idle / 1e6, "keepers_mb": keepers / 1e6,
    });
    println!("\n{result}");
    Ok(())
}
