//! Which tests run on a real control plane, and which need the embedded cluster.

use anyhow::{Result, bail};
use clap::Args;

use super::{operation, programs};
use crate::subject::Subject;
use crate::test::{cargo, count};
use crate::tools;

/// Names to the testkit the folder with the programs; it starts a control plane for each test.
const VARIABLE: &str = "WINDLASS_TEST_KUBERNETES";

/// A file of tests.
struct Suite {
    package: &'static str,
    test: &'static str,
    /// Tests that cannot run there, each with the reason.
    without: &'static [(&'static str, &'static str)],
}

const fn suite(package: &'static str, test: &'static str, without: &'static [(&'static str, &'static str)]) -> Suite {
    Suite { package, test, without }
}

/// Everything that runs on both.
const SUITES: [Suite; 13] = [
    suite("memcached-operator", "cluster", &[]),
    suite("memcached-operator", "process", &[]),
    suite("memcached-operator", "plan", &[]),
    suite("memcached-operator", "packages", &[]),
    suite("windlass", "engine", &[]),
    suite("windlass", "from_kube", &[]),
    suite("windlass", "observability", &[]),
    suite("windlass", "parts", &[]),
    suite("windlass", "plan", &[]),
    suite("windlass", "reconcile", &[]),
    suite("windlass", "schema", &[]),
    suite("windlass", "versions", &[]),
    suite("windlass", "webhooks", &[]),
];

/// Options of `kubernetes test`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only files of tests whose name, such as `memcached-operator/cluster`, contains this; `operation` for the installed operator.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// How many tests, each with a control plane of its own, run at the same time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// How many resources the installed operator keeps, each with a Pod that runs.
    #[arg(long, default_value_t = 100)]
    resources: usize,
    #[command(flatten)]
    subject: Subject,
}

/// The name of what is done with an installed operator and Pods that run.
const OPERATION: &str = "operation";

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only))
    }
}

/// Runs them and adds up how they ended.
pub(super) fn run(options: &Options) -> Result<()> {
    let (folder, kubectl) = (programs::folder()?, tools::install()?);
    let (mut passed, mut failed) = (0, Vec::new());
    for suite in &SUITES {
        let name = format!("{}/{}", suite.package, suite.test);
        if !options.wants(&name) {
            continue;
        }
        println!("== {name}");
        let mut tests = cargo();
        tests.args(["test", "--quiet", "--package", suite.package, "--test", suite.test, "--no-fail-fast", "--"]);
        tests.arg(format!("--test-threads={}", options.threads));
        for (test, why) in suite.without {
            println!("without {test}: {why}");
            tests.args(["--skip", test]);
        }
        tests.env(VARIABLE, &folder).env("WINDLASS_TEST_KUBECTL", &kubectl);
        let (counts, is_well) = count(&mut tests)?;
        passed += counts.passed;
        if !is_well || counts.failed > 0 {
            failed.push(name);
        }
    }
    println!("{passed} passed on Kubernetes {}", tools::KUBERNETES);
    if options.wants(OPERATION) {
        println!("== {OPERATION}");
        operation::run(&options.subject, options.resources)?;
    }
    if !failed.is_empty() {
        bail!("tests failed in {}; the names are above", failed.join(", "));
    }
    Ok(())
}
