//! The end-to-end program: a process per test, so that a test that hangs or panics takes no other with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::super::ginkgo::Report;
use super::report::{self, Outcome, Spec};

/// What a test may take beyond its limit to clean up before its process is killed.
const CLEANUP_TIME: Duration = Duration::from_secs(120);
/// How often we look whether a process has ended.
const POLL: Duration = Duration::from_millis(100);
/// The longest part of a test's name that its files bear.
const FILE_NAME_LENGTH_MAX: usize = 120;

/// The program, and the cluster that it tests.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kubectl: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) limit: Duration,
}

/// The conformance tests of the release, or those of them whose name matches.
pub(super) fn list(program: &Path, scratch: &Path, focus: Option<&str>) -> Result<Vec<Spec>> {
    let list = scratch.join("list.json");
    let mut command = Command::new(program);
    command
        .args(["--provider=skeleton", "--ginkgo.dry-run", "--ginkgo.silence-skips"])
        .arg("--ginkgo.label-filter=Conformance");
    if let Some(focus) = focus {
        command.arg(format!("--ginkgo.focus={focus}"));
    }
    command.arg(format!("--ginkgo.json-report={}", list.display()));
    let log = File::create(scratch.join("list.log"))?;
    let status =
        command.stdout(log.try_clone()?).stderr(log).status().context("cannot start the end-to-end program")?;
    if !status.success() {
        bail!("the end-to-end program could not list its tests; see {}", scratch.join("list.log").display());
    }
    Ok(report::chosen(&Report::parse(&fs::read(&list)?)?))
}

/// How the test ended in the last run, if it has left a report.
pub(super) fn last(scratch: &Path, spec: &Spec) -> Option<Outcome> {
    let found = Report::parse(&fs::read(report_file(scratch, spec)).ok()?).ok()?;
    let (failure, time) = report::outcome(&found, &spec.name);
    Some(Outcome { name: spec.name.clone(), failure, time })
}

fn report_file(scratch: &Path, spec: &Spec) -> PathBuf {
    scratch.join(format!("{}.json", file_name(&spec.name)))
}

impl Program {
    /// Runs one test to its end.
    pub(super) fn run(&self, spec: &Spec) -> Outcome {
        let begin = Instant::now();
        match self.try_run(spec) {
            Ok((failure, time)) => Outcome { name: spec.name.clone(), failure, time },
            Err(error) => {
                Outcome { name: spec.name.clone(), failure: Some(format!("{error:#}")), time: begin.elapsed() }
            }
        }
    }

    fn try_run(&self, spec: &Spec) -> Result<(Option<String>, Duration)> {
        let file = report_file(&self.scratch, spec);
        let log = File::create(file.with_extension("log"))?;
        let flag = |name: &str, value: &Path| format!("--{name}={}", value.display());
        let mut child = Command::new(&self.path)
            .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1", "--minStartupPods=-1"])
            .args(["--dump-logs-on-failure=false", "--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.v"])
            .arg(flag("kubeconfig", &self.kubeconfig))
            .arg(flag("kubectl-path", &self.kubectl))
            .arg(flag("e2e-output-dir", &self.scratch))
            .arg(flag("ginkgo.json-report", &file))
            .arg(format!("--ginkgo.timeout={}s", self.limit.as_secs()))
            .arg(format!("--ginkgo.focus={}$", quoted(&spec.name)))
            .current_dir(&self.scratch)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start the end-to-end program")?;
        if wait(&mut child, self.limit + CLEANUP_TIME)?.is_none() {
            bail!("it took longer than {} s and did not clean up either", self.limit.as_secs());
        }
        let text = fs::read(&file).context("it ended without a report; see its log")?;
        Ok(report::outcome(&Report::parse(&text)?, &spec.name))
    }
}

/// Waits for the process to end; kills it and gives nothing when it takes too long.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// The name as a regular expression that matches just it.
fn quoted(name: &str) -> String {
    name.chars().fold(String::new(), |mut text, letter| {
        if !letter.is_alphanumeric() && letter != ' ' {
            text.push('\\');
        }
        text.push(letter);
        text
    })
}

/// The name as a name of files.
fn file_name(name: &str) -> String {
    let plain: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(FILE_NAME_LENGTH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_expressions_and_files() {
        assert_eq!(quoted("[sig-a] it's (a.b) `x`"), r"\[sig\-a\] it\'s \(a\.b\) \`x\`");
        assert_eq!(file_name("[sig-a] should / work. [Slow]"), "sig-a-should-work-Slow");
    }
}
