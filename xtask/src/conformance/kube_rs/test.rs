//! The tests: found, run one by one, judged.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::source::Source;

/// What the tests are built with: everything that a test asks for, with the TLS that Windlass uses.
const FEATURES: &str = "kube/derive,kube/runtime,kube/ws,kube/jsonpatch,kube-client/rustls-tls,kube-client/ring,\
     kube-client/ws,kube-client/jsonpatch,kube-client/kubelet-debug,kube-client/unstable-client";
/// How long a test may take.
const TEST_SECONDS_MAX: &str = "120";

/// One test that needs a cluster.
pub(super) struct Test {
    pub(super) package: String,
    pub(super) name: String,
    program: PathBuf,
}

/// How a test ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    /// With the line that says why.
    Failed(String),
    /// With what it would need.
    LeftOut(&'static str),
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Passed => "passed  ",
            Self::Failed(_) => "FAILED  ",
            Self::LeftOut(_) => "left out",
        })
    }
}

/// Builds the test programs and lists the tests that are ignored where there is no cluster.
pub(super) fn find(source: &Source) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for (package, program) in build(source)? {
        let output = Command::new(&program).args(["--ignored", "--list", "--format", "terse"]).output()?;
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = names.lines().filter_map(|line| line.strip_suffix(": test")).filter(|name| needs_cluster(name));
        tests.extend(names.map(|name| Test {
            package: package.clone(),
            name: name.to_owned(),
            program: program.clone(),
        }));
    }
    if tests.is_empty() {
        bail!("no test needs a cluster, which cannot be");
    }
    Ok(tests)
}

/// The tests of authentication are ignored for the sake of other systems.
fn needs_cluster(name: &str) -> bool {
    !name.starts_with("client::auth::")
}

/// The test program of each package.
fn build(source: &Source) -> Result<Vec<(String, PathBuf)>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&source.folder).args(["test", "--lib", "--no-run", "--quiet", "--features", FEATURES]);
    command.args(["--message-format", "json-render-diagnostics"]).env_remove("CARGO_TARGET_DIR");
    for package in source.packages() {
        command.args(["--package", package]);
    }
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the tests of kube-rs cannot be built");
    }
    let text = String::from_utf8(output.stdout)?;
    let mut programs = Vec::new();
    for message in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(program) = message["executable"].as_str() else { continue };
        let package = message["target"]["name"].as_str().context("an artifact has a name")?.replace('_', "-");
        programs.push((package, PathBuf::from(program)));
    }
    programs.sort();
    Ok(programs)
}

impl Test {
    /// Runs the test alone; what it says is kept in a file below `place`.
    pub(super) fn run(&self, kubeconfig: &Path, place: &Path) -> Result<Verdict> {
        let output = Command::new("timeout")
            .arg(TEST_SECONDS_MAX)
            .arg(&self.program)
            .args(["--ignored", "--exact", &self.name, "--nocapture"])
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_BACKTRACE", "0")
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
        let logs = place.join("logs");
        fs::create_dir_all(&logs)?;
        fs::write(logs.join(self.name.replace("::", ".")).with_added_extension("log"), &text)?;
        if output.status.success() && text.contains("1 passed") {
            Ok(Verdict::Passed)
        } else {
            Ok(Verdict::Failed(reason(&text)))
        }
    }
}

/// The line that says why a test failed.
fn reason(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told = lines.clone().find(|line| line.starts_with("Error: ")).map(str::to_owned);
    let panic = lines.find(|line| line.contains("panicked at")).map(|_| lines.next().unwrap_or_default().to_owned());
    told.or(panic).unwrap_or_else(|| format!("no answer in {TEST_SECONDS_MAX} s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_test_failed_is_found() {
        let panic = "\nrunning 1 test\nthread 'a' panicked at src/lib.rs:1:2:\nassertion failed: x\nnote: run\n";
        assert_eq!(reason(panic), "assertion failed: x");
        assert_eq!(reason("Error: Api(NotFound)\ntest a ... FAILED\n"), "Error: Api(NotFound)");
        assert_eq!(reason("running 1 test\n"), "no answer in 120 s");
    }
}
