//! What the script asks of the cluster, and how it waits.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Far more than anything takes that works at all.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// kubectl as somebody with every right.
pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn new(program: &Path, kubeconfig: PathBuf) -> Self {
        Self { program: program.to_owned(), kubeconfig }
    }

    /// What it prints; fails when it does, with its words.
    pub(super) fn run(&self, words: &[&str]) -> Result<String> {
        self.feed(words, "")
    }

    /// Makes an object from JSON, as `kubectl create` does.
    pub(super) fn create(&self, object: &Value) -> Result<()> {
        self.feed(&["create", "-f", "-"], &object.to_string()).map(drop)
    }

    /// Merges into an object.
    pub(super) fn merge(&self, object: &str, patch: &Value) -> Result<()> {
        self.run(&["patch", object, "--type=merge", "-p", &patch.to_string()]).map(drop)
    }

    /// An object such as `deployment/x`, or null if there is none.
    pub(super) fn get(&self, object: &str) -> Result<Value> {
        let text = self.run(&["get", object, "-o", "json", "--ignore-not-found"])?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_str(&text)?)
    }

    /// The objects of a resource, narrowed by more words.
    pub(super) fn list(&self, words: &[&str]) -> Result<Vec<Value>> {
        let text = self.run(&[&["get", "-o", "json"], words].concat())?;
        let mut list: Value = serde_json::from_str(&text)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("kubectl answered with no list"),
        }
    }

    /// Waits until an object is as wanted, and says how long that took.
    pub(super) fn until(&self, object: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Duration> {
        wait(|| {
            let seen = self.get(object)?;
            Ok(if is_so(&seen) { Ok(()) } else { Err(format!("{object} {what}; it is {}", brief(&seen))) })
        })
    }

    fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        child.stdin.take().context("its input is ours")?.write_all(input.as_bytes())?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Looks again and again until the look is content, or patience ends; what was missing is then the error.
pub(super) fn wait(mut look: impl FnMut() -> Result<Result<(), String>>) -> Result<Duration> {
    let begin = Instant::now();
    loop {
        let Err(missing) = look()? else { return Ok(begin.elapsed()) };
        if begin.elapsed() > PATIENCE {
            bail!("not within {} s: {missing}", PATIENCE.as_secs());
        }
        sleep(PAUSE);
    }
}

/// Spec and status of an object, short enough for a line.
fn brief(object: &Value) -> String {
    const LETTERS_MAX: usize = 300;
    let text = match object {
        Value::Null => "not there".to_owned(),
        object => format!("{} {}", object["spec"], object["status"]),
    };
    text.chars().take(LETTERS_MAX).collect()
}
