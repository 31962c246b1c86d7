//! One operator, written with four toolkits, run through one script.

mod build;
mod count;
mod kubectl;
mod page;
mod project;
mod script;
mod stage;
mod symbols;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::subject::Subject;
use crate::tools;
use crate::workspace::{root, which};
use project::{PROJECTS, Project};
use script::{BEHAVIOURS, Behaviour, Verdict};
use stage::Stage;

/// Where the results are written, in the workspace.
const RESULTS: &str = "docs/compare.md";

/// Options of `compare operators`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these implementations (windlass, kubebuilder, kopf, kube); the page is not written.
    only: Vec<String>,
    /// Take what held of the other implementations from their last runs, and write the page.
    #[arg(long, conflicts_with = "behaviour")]
    keep_others: bool,
    /// Only behaviours whose name contains this, after those that they build on; the page is not written.
    #[arg(long, value_name = "TEXT")]
    behaviour: Option<String>,
    #[command(flatten)]
    subject: Subject,
}

/// How one implementation did.
pub(crate) struct Row {
    project: Project,
    verdicts: Vec<Verdict>,
}

/// Builds every implementation, runs the script against each, prints the tables, and writes the page when it is whole.
pub(crate) fn run(options: &Options) -> Result<()> {
    let known: Vec<&str> = PROJECTS.iter().map(|(name, _)| *name).collect();
    if let Some(other) = options.only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("{other} is none of the implementations; these are: {}", known.join(" "));
    }
    let place = root().join("target/compare");
    fs::create_dir_all(&place)?;
    let windlass = options.subject.program()?;
    let kubectl = kubectl()?;
    let is_wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|wanted| wanted == name);
    let mut rows = Vec::new();
    for (name, folder) in PROJECTS {
        let project = Project::read(name, folder)?;
        let results = place.join(format!("{name}.json"));
        if is_wanted(name) {
            let program = build::build(name, &root().join(folder), &place, &windlass)?;
            let mut stage = Stage::set(&place.join(name), &windlass, &kubectl, program)?;
            let verdicts = perform(&project, &mut stage, options.behaviour.as_deref());
            fs::write(&results, serde_json::to_string_pretty(&verdicts)?)?;
            rows.push(Row { project, verdicts });
        } else if options.keep_others {
            let text = fs::read_to_string(&results).with_context(|| format!("{name} was never run to its end"))?;
            let verdicts: Vec<Verdict> = serde_json::from_str(&text)?;
            ensure!(verdicts.len() == BEHAVIOURS.len(), "the script has changed since {name} was run: run it again");
            rows.push(Row { project, verdicts });
        }
    }
    println!("\n{}", page::tables(&rows));
    if rows.len() == PROJECTS.len() && options.behaviour.is_none() {
        fs::write(root().join(RESULTS), page::page(&rows))?;
        println!("written: {RESULTS}");
    }
    judge(&rows)
}

/// Runs the script to its end, whatever fails on the way.
fn perform(project: &Project, stage: &mut Stage, only: Option<&str>) -> Vec<Verdict> {
    let is_wanted = |behaviour: &Behaviour| behaviour.is_base || only.is_none_or(|text| behaviour.name.contains(text));
    let act = |behaviour: &Behaviour| {
        let verdict = match project.words(behaviour.name) {
            Some(words) if behaviour.is_optional => Verdict::Absent(words.to_owned()),
            _ if !is_wanted(behaviour) => Verdict::Skipped,
            _ => behaviour.perform(stage),
        };
        println!("{:<12} {verdict:<8} {}", project.name, behaviour.title);
        if let Verdict::Failed(why) = &verdict {
            println!("{:<12}          {why}", "");
        }
        verdict
    };
    BEHAVIOURS.iter().map(act).collect()
}

/// The page may show what others lack; what our own operator lacks is a failure of this command.
fn judge(rows: &[Row]) -> Result<()> {
    let own = rows.iter().find(|row| row.project.name == "windlass");
    let failed = own.map_or(0, |row| row.verdicts.iter().filter(|verdict| verdict.is_failed()).count());
    if failed > 0 {
        bail!("{failed} behaviours of our own operator did not hold");
    }
    Ok(())
}

/// The machine's kubectl: any will do for a script this simple. Else the one of the tests.
fn kubectl() -> Result<PathBuf> {
    match which("kubectl") {
        Some(path) => Ok(path),
        None => tools::kubectl().context("kubectl is needed to run the script: install it, or Go to build it with"),
    }
}
