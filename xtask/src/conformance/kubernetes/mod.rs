//! Kubernetes' own conformance tests: chosen, run against a cluster of ours, counted, written down.

mod cluster;
mod images;
mod page;
mod program;
mod report;
mod selection;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use self::cluster::ConformanceCluster;
use self::page::Scope;
use self::program::Program;
use self::report::{Outcome, Spec};
use self::selection::{Need, Selection};
use crate::subject::Subject;
use crate::tools;
use crate::workspace::root;

/// Options of `conformance kubernetes`.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Options {
    /// Only tests whose name matches this regular expression; the page is not written.
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,
    /// Also the tests for which a node that only pretends to run Pods is enough.
    #[arg(long)]
    all: bool,
    /// Only the tests whose Pods are run, by a node that runs the tests' images.
    #[arg(long, conflicts_with = "all")]
    node: bool,
    /// How Pods are kept apart, as `windlass up --isolation` has it; the page is not written.
    #[arg(long, value_name = "WORD", requires = "node", conflicts_with = "failed")]
    isolation: Option<String>,
    /// Only what failed or did not run in the last run; the page is written from both.
    #[arg(long, conflicts_with = "focus")]
    failed: bool,
    /// How many tests run at a time; those that must be alone are.
    #[arg(long, default_value_t = 2)]
    procs: usize,
    /// How many seconds a test may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    limit: u64,
    #[command(flatten)]
    subject: Subject,
}

impl Options {
    fn scope(&self) -> Scope {
        match (self.node, self.all) {
            (true, _) => Scope::Node,
            (false, true) => Scope::All,
            (false, false) => Scope::NoNode,
        }
    }
}

/// Runs the tests, prints how each ended, and writes docs/conformance.md.
pub(crate) fn run(options: &Options) -> Result<()> {
    let scratch = root().join("target/conformance").join(if options.node { "kubernetes-node" } else { "kubernetes" });
    clear(&scratch, options.failed)?;
    let kubectl = tools::kubectl()?;
    let e2e = tools::e2e()?;
    let selection = Selection::read()?;
    let specs = program::list(&e2e, &scratch, options.focus.as_deref())?;
    if options.focus.is_none() {
        selection.check(&specs)?;
    }
    let wanted: Vec<Spec> = specs.iter().filter(|spec| wanted(options, selection.need(&spec.name))).cloned().collect();
    if wanted.is_empty() {
        bail!("no conformance test is chosen; --all and --node consider those that need a node too");
    }
    let (passed, wanted) = if options.failed { left(&scratch, wanted) } else { (Vec::new(), wanted) };
    let node = options.node.then(|| options.isolation.as_deref().unwrap_or("sandbox"));
    let cluster = ConformanceCluster::start(options.subject.program()?, &scratch, &kubectl, node)?;
    let limit = Duration::from_secs(options.limit);
    let program = Program { path: e2e, kubectl, kubeconfig: cluster.kubeconfig(), scratch: scratch.clone(), limit };
    let mut outcomes = run_all(&program, wanted, options.procs.max(1));
    drop(cluster);
    outcomes.extend(passed);
    outcomes.sort_by(|one, other| one.name.cmp(&other.name));
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    println!("{} passed, {failed} failed; reports and logs are in {}", outcomes.len() - failed, scratch.display());
    if options.focus.is_none() && options.isolation.is_none() {
        page::write(&selection, &specs, &outcomes, options.scope())?;
    }
    match failed {
        0 => Ok(()),
        _ => bail!("{failed} of {} conformance tests failed", outcomes.len()),
    }
}

/// Makes room for a run: for all of it, or beside the reports of the last one.
fn clear(scratch: &Path, keep_reports: bool) -> Result<()> {
    let old = if keep_reports { scratch.join("cluster") } else { scratch.to_path_buf() };
    if old.exists() {
        fs::remove_dir_all(&old)?;
    }
    fs::create_dir_all(scratch)?;
    Ok(())
}

/// What passed in the last run, and what is left. Reports tell of all tests of the release, so each is read once.
fn left(scratch: &Path, wanted: Vec<Spec>) -> (Vec<Outcome>, Vec<Spec>) {
    let (mut passed, mut left) = (Vec::new(), Vec::new());
    for spec in wanted {
        match program::last(scratch, &spec).filter(|last| last.failure.is_none()) {
            Some(last) => passed.push(last),
            None => left.push(spec),
        }
    }
    (passed, left)
}

/// What our node does not have is only tried where a test is asked for by name.
fn wanted(options: &Options, need: Need) -> bool {
    match need {
        Need::Nothing => !options.node,
        Need::FakeNode => options.all,
        Need::Node => options.node,
        Need::More => options.node && options.focus.is_some(),
    }
}

/// Runs the tests that bear company `procs` at a time, then the others one by one.
fn run_all(program: &Program, specs: Vec<Spec>, procs: usize) -> Vec<Outcome> {
    let total = specs.len();
    let (serial, parallel): (Vec<Spec>, Vec<Spec>) = specs.into_iter().partition(|spec| spec.serial);
    let outcomes = Mutex::new(Vec::new());
    for (specs, procs) in [(parallel, procs), (serial, 1)] {
        let queue = Mutex::new(specs.into());
        std::thread::scope(|scope| {
            for _ in 0..procs {
                scope.spawn(|| work(program, &queue, &outcomes, total));
            }
        });
    }
    outcomes.into_inner().expect("no worker panics")
}

/// Runs tests of the queue until it is empty.
fn work(program: &Program, queue: &Mutex<VecDeque<Spec>>, outcomes: &Mutex<Vec<Outcome>>, total: usize) {
    let next = || queue.lock().expect("no worker panics").pop_front();
    while let Some(spec) = next() {
        let outcome = program.run(&spec);
        let mut outcomes = outcomes.lock().expect("no worker panics");
        say(&outcome, outcomes.len() + 1, total);
        outcomes.push(outcome);
    }
}

fn say(outcome: &Outcome, done: usize, total: usize) {
    let seconds = outcome.time.as_secs_f64();
    match &outcome.failure {
        None => println!("{done}/{total} ok   {seconds:6.1} s  {}", outcome.name),
        Some(reason) => println!("{done}/{total} FAIL {seconds:6.1} s  {}\n        {reason}", outcome.name),
    }
}
