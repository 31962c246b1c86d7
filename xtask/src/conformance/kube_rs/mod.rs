//! kube-rs's own tests that need a cluster, unchanged, on Windlass.

mod page;
mod source;
mod test;

use std::fs;

use anyhow::{Result, bail};
use clap::Args;

use crate::cluster::Cluster;
use crate::subject::Subject;
use crate::workspace::root;
use test::{Test, Verdict};

/// Where the results are written, in the workspace.
const RESULTS: &str = "docs/conformance-kube-rs.md";
/// Tests that need more than an API server, its controllers and a node that pretends to run Pods.
const LEFT_OUT: [(&str, &str); 3] = [
    ("pod_can_exec_and_write_to_stdin", "runs commands in a container of the image busybox"),
    ("pod_can_exec_and_write_to_stdin_from_node_proxy", "runs commands through the port of a kubelet"),
    ("can_get_pod_logs_and_evict", "reads what a container of the image busybox prints"),
];

/// Options of `conformance kube-rs`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only tests whose name contains one of these; the page is not written.
    tests: Vec<String>,
    #[command(flatten)]
    subject: Subject,
}

/// Builds and runs the tests, prints how each ended, and writes the page.
pub(crate) fn run(options: &Options) -> Result<()> {
    let place = root().join("target/conformance/kube-rs");
    let source = source::prepare(&place)?;
    let mut tests = test::find(&source)?;
    tests.retain(|test| options.tests.is_empty() || options.tests.iter().any(|part| test.name.contains(part)));
    let cluster = Cluster::start(&place, options.subject.program()?)?;
    let mut rows = Vec::new();
    for test in tests {
        let verdict = match left_out(&test) {
            Some(reason) => Verdict::LeftOut(reason),
            None => test.run(&cluster.kubeconfig(), &place)?,
        };
        println!("{verdict} {} {}", test.package, test.name);
        rows.push((test, verdict));
    }
    if options.tests.is_empty() {
        fs::write(root().join(RESULTS), page::page(&source.release, &rows))?;
    }
    let count = |like: fn(&Verdict) -> bool| rows.iter().filter(|(_, verdict)| like(verdict)).count();
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let passed = count(|verdict| *verdict == Verdict::Passed);
    println!("kube-rs {}: {passed} passed, {failed} failed, {} left out", source.release, rows.len() - passed - failed);
    if failed > 0 {
        bail!("{failed} tests failed; their output is in {}", place.join("logs").display());
    }
    Ok(())
}

fn left_out(test: &Test) -> Option<&'static str> {
    LEFT_OUT.iter().find(|(name, _)| test.name.rsplit("::").next() == Some(*name)).map(|(_, reason)| *reason)
}
