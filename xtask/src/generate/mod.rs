//! The tables of `windlass-schema`, generated from the API definitions of one pinned Kubernetes release.
//!
//! Only facts are taken over: names, types, numbers, scopes, verbs, merge keys, defaults. Prose is left out.

mod discovery;
mod goldens;
mod gotypes;
mod metrics;
mod openapi;
mod source;
mod structs;

use anyhow::{Context, bail};

use crate::workspace::root;
use source::Source;

/// How hard the tables are compressed: they are written seldom and read at every build.
const COMPRESSION: i32 = 19;

/// What `cargo xtask generate` is told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only compare: fail when a checked-in table differs from what would be generated.
    #[arg(long)]
    check: bool,
}

/// One generated file: its path under the root of the workspace, and its content.
struct Output {
    path: &'static str,
    content: Vec<u8>,
}

/// Generates every table, or compares the checked-in ones.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let source = match Source::fetch() {
        Ok(source) => source,
        Err(error) if options.check => {
            println!("skipped: the Kubernetes sources are not reachable, so freshness was not checked ({error:#})");
            return Ok(());
        }
        Err(error) => return Err(error.context("the Kubernetes sources are not reachable")),
    };
    let outputs = outputs(&source)?;
    if options.check { compare(&outputs) } else { write(&outputs) }
}

fn outputs(source: &Source) -> anyhow::Result<Vec<Output>> {
    let mut definitions = openapi::definitions(source)?;
    definitions.extend(metrics::definitions());
    let kinds = discovery::kinds(source, &definitions)?;
    let structs = structs::lines(source, &definitions)?;
    Ok(vec![
        Output { path: "crates/schema/data/kinds.json", content: discovery::render(&kinds)?.into_bytes() },
        Output { path: "crates/schema/data/metrics.json", content: metrics::kinds()?.into_bytes() },
        Output { path: "crates/schema/data/definitions.zst", content: compress(&openapi::render(&definitions)?)? },
        Output { path: "crates/schema/data/structs.zst", content: compress(&structs)? },
        Output { path: "crates/schema/tests/data/goldens.zst", content: compress(&goldens::bundle(source, &kinds)?)? },
    ])
}

fn compress(content: &str) -> anyhow::Result<Vec<u8>> {
    zstd::bulk::compress(content.as_bytes(), COMPRESSION).context("compressing a table")
}

fn write(outputs: &[Output]) -> anyhow::Result<()> {
    for output in outputs {
        let path = root().join(output.path);
        std::fs::create_dir_all(path.parent().expect("a generated file has a directory"))?;
        std::fs::write(&path, &output.content).with_context(|| format!("writing {}", output.path))?;
        println!("{} ({} bytes)", output.path, output.content.len());
    }
    Ok(())
}

fn compare(outputs: &[Output]) -> anyhow::Result<()> {
    for output in outputs {
        let current = std::fs::read(root().join(output.path)).with_context(|| format!("reading {}", output.path))?;
        if plain(&current) != plain(&output.content) {
            bail!("{} is stale: run `cargo xtask generate` and commit the result", output.path);
        }
    }
    println!("the generated tables are fresh");
    Ok(())
}

/// The content before compression, so that another version of zstd does not count as a difference.
fn plain(content: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(content).unwrap_or_else(|_| content.to_vec())
}
