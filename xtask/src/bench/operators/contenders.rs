//! Who takes part: the same work with several toolkits, built as their authors advise.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tools;
use crate::workspace::{root, run, target};

/// A way to do the work.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    program: PathBuf,
    words: Vec<String>,
    /// How it writes: `apply` or `compare`.
    writes: Option<&'static str>,
}

/// Names, what they are, and how they write, where they can do so in two ways.
const CONTENDERS: [(&str, &str, Option<&str>); 7] = [
    ("windlass", "Windlass's SDK", None),
    ("controller-runtime", "controller-runtime, compares", Some("compare")),
    ("controller-runtime-apply", "controller-runtime, applies", Some("apply")),
    ("kube", "kube::runtime, applies", Some("apply")),
    ("kube-compare", "kube::runtime, compares", Some("compare")),
    ("kopf", "Kopf, applies", Some("apply")),
    ("kopf-compare", "Kopf, compares", Some("compare")),
];

/// Builds those that are wanted; all if none is named.
pub(super) fn build(only: &[String]) -> Result<Vec<Contender>> {
    let peers = root().join("bench/peers");
    let wanted = CONTENDERS.iter().filter(|(name, ..)| only.is_empty() || only.iter().any(|it| it == name));
    wanted
        .map(|&(name, text, writes)| {
            let (program, words) = match name {
                "windlass" => {
                    let words = ["run", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
                    (rust(&peers, "bench-windlass")?, words.map(str::to_owned).to_vec())
                }
                name if name.starts_with("controller-runtime") => (go(&peers)?, Vec::new()),
                name if name.starts_with("kube") => (rust(&peers, "bench-kube")?, Vec::new()),
                _ => python(&peers)?,
            };
            Ok(Contender { name, text, program, words, writes })
        })
        .collect()
}

impl Contender {
    /// Starts it with a kubeconfig.
    pub(super) fn command(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words).env("KUBECONFIG", kubeconfig);
        if let Some(writes) = self.writes {
            command.env("WRITES", writes);
        }
        command
    }
}

fn rust(peers: &Path, package: &str) -> Result<PathBuf> {
    let place = target().join("bench-peers");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.current_dir(peers).args(["build", "--quiet", "--release", "--package", package]);
    run(build.arg("--target-dir").arg(&place))?;
    Ok(place.join("release").join(package))
}

fn go(peers: &Path) -> Result<PathBuf> {
    let program = target().join("bench-controller-runtime");
    let go = tools::go().context("controller-runtime needs Go 1.26: install it from https://go.dev/dl")?;
    run(Command::new(go).current_dir(peers.join("controller-runtime")).args(["build", "-o"]).arg(&program).arg("."))?;
    Ok(program)
}

fn python(peers: &Path) -> Result<(PathBuf, Vec<String>)> {
    let (environment, folder) = (target().join("bench-kopf-venv"), peers.join("kopf"));
    if !environment.join("bin/pip").is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))
            .context("Kopf needs Python 3.10 or later with venv: install python3 and python3-venv")?;
    }
    run(Command::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(folder.join("requirements.txt")))?;
    let script = folder.join("widgets.py").display().to_string();
    let words = ["run", "--all-namespaces", "--standalone", "--quiet", &script].map(str::to_owned);
    Ok((environment.join("bin/kopf"), words.to_vec()))
}
