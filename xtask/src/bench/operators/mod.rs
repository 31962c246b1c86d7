//! One job, several toolkits: a ConfigMap, a Deployment and a status for each resource.

mod contenders;
mod goals;
mod page;
mod phases;
mod plot;
mod records;
mod relay;
mod requests;
mod servers;

use std::fs;

use anyhow::Result;
use clap::Args;

use super::process::load_average;
use crate::test::cargo;
use crate::workspace::{root, run as run_command, target};
use phases::Measured;
use servers::{Server, by_server};

/// Where the results are written, in the workspace.
const RESULTS: &str = "docs/bench-operators.md";

/// Options of `bench operators`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these contenders; the page is not written.
    only: Vec<String>,
    /// How many resources.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    sizes: Vec<usize>,
    /// On which API servers.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Server::Kubernetes, Server::Windlass])]
    servers: Vec<Server>,
    /// Use the programs as they were built last.
    #[arg(long)]
    no_build: bool,
    /// Take the others, and other sizes and servers, from their last runs, and write the page of all.
    #[arg(long)]
    keep_others: bool,
}

/// Measures all, and prints the tables, the goals, and all in one line.
pub(super) fn run(options: &Options) -> Result<()> {
    let anew = !options.no_build;
    let servers: Vec<_> = options.servers.iter().map(|server| server.build(anew)).collect::<Result<_>>()?;
    run_command(cargo().args(["build", "--quiet", "--package", "windlass-load"]))?;
    let load = target().join("debug/windlass-load");
    let contenders = contenders::build(&options.only, anew)?;
    println!("{} cores, load {}", std::thread::available_parallelism().map_or(0, usize::from), load_average());
    let mut results: Vec<Measured> = Vec::new();
    for server in &servers {
        for (size, contender) in options.sizes.iter().flat_map(|size| contenders.iter().map(move |it| (*size, it))) {
            let title = format!("{} with {size} resources on {}", contender.name, server.server.name());
            println!("{title}");
            match phases::measure(server, &load, contender, size) {
                Ok(measured) => results.push(measured),
                // One that cannot do it is told of, and the others go on.
                Err(error) => println!("{title} failed: {error:#}"),
            }
        }
    }
    let all = records::with_others(&results)?;
    if options.keep_others {
        results = all;
    }
    println!("\n{}", page::results(&results));
    if options.only.is_empty() || options.keep_others {
        let folder = root().join("docs/bench-operators");
        fs::create_dir_all(&folder)?;
        for (server, results) in by_server(&results) {
            for (file, plot) in plot::all(server, &results) {
                fs::write(folder.join(file), plot)?;
            }
        }
        fs::write(root().join(RESULTS), page::text(&results))?;
    }
    println!("{}", goals::json(&results));
    Ok(())
}
