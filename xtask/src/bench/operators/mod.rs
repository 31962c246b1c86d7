//! One job, several toolkits: a ConfigMap, a Deployment and a status for each resource.

mod contenders;
mod goals;
mod page;
mod phases;
mod plot;
mod relay;
mod requests;

use std::fs;

use anyhow::Result;
use clap::Args;

use super::process::load_average;
use crate::kubernetes::programs;
use crate::test::cargo;
use crate::workspace::{root, run as run_command, target};
use phases::Measured;

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
    /// Write the page also if only some take part.
    #[arg(long)]
    page: bool,
}

/// Measures all, and prints the tables, the goals, and all in one line.
pub(super) fn run(options: &Options) -> Result<()> {
    let programs = programs::folder()?;
    run_command(cargo().args(["build", "--quiet", "--package", "windlass-load"]))?;
    let load = target().join("debug/windlass-load");
    let contenders = contenders::build(&options.only)?;
    println!("{} cores, load {}", std::thread::available_parallelism().map_or(0, usize::from), load_average());
    let mut results: Vec<Measured> = Vec::new();
    for size in &options.sizes {
        for contender in &contenders {
            println!("{} with {size} resources", contender.name);
            match phases::measure(&programs, &load, contender, *size) {
                Ok(measured) => results.push(measured),
                // One that cannot do it is told of, and the others go on.
                Err(error) => println!("{} with {size} resources failed: {error:#}", contender.name),
            }
        }
    }
    println!("\n{}", page::tables(&results));
    if options.only.is_empty() || options.page {
        let folder = root().join("docs/bench-operators");
        fs::create_dir_all(&folder)?;
        for (file, plot) in plot::all(&results) {
            fs::write(folder.join(file), plot)?;
        }
        fs::write(root().join(RESULTS), page::text(&results))?;
    }
    println!("{}", goals::json(&results));
    Ok(())
}
