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
    ways: Ways,
}

/// In which of its ways a program works: variables of its environment. `WRITES` is `apply` or `compare`.
type Ways = &'static [(&'static str, &'static str)];

const APPLY: Ways = &[("WRITES", "apply")];
const COMPARE: Ways = &[("WRITES", "compare")];

/// Names, what they are, and their ways, where they have several.
const CONTENDERS: [(&str, &str, Ways); 8] = [
    ("windlass", "Windlass's SDK", &[]),
    ("controller-runtime", "controller-runtime, compares", COMPARE),
    ("controller-runtime-apply", "controller-runtime, applies", APPLY),
    ("kube", "kube::runtime, applies", APPLY),
    ("kube-pruned", "kube::runtime, applies, prunes", &[("WRITES", "apply"), ("CACHES", "pruned")]),
    ("kube-compare", "kube::runtime, compares", COMPARE),
    ("kopf", "Kopf, applies", APPLY),
    ("kopf-compare", "Kopf, compares", COMPARE),
];

/// The place of a contender among all.
pub(super) fn rank(name: &str) -> usize {
    CONTENDERS.iter().position(|(it, ..)| *it == name).unwrap_or(CONTENDERS.len())
}

/// Builds those that are wanted; all if none is named.
pub(super) fn build(only: &[String], anew: bool) -> Result<Vec<Contender>> {
    let builder = Builder { peers: root().join("bench/peers"), anew };
    let wanted = CONTENDERS.iter().filter(|(name, ..)| only.is_empty() || only.iter().any(|it| it == name));
    wanted
        .map(|&(name, text, ways)| {
            let (program, words) = match name {
                "windlass" => {
                    let words = ["run", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
                    (builder.rust("bench-windlass")?, words.map(str::to_owned).to_vec())
                }
                name if name.starts_with("controller-runtime") => (builder.go()?, Vec::new()),
                name if name.starts_with("kube") => (builder.rust("bench-kube")?, Vec::new()),
                _ => builder.python()?,
            };
            Ok(Contender { name, text, program, words, ways })
        })
        .collect()
}

impl Contender {
    /// Starts it with a kubeconfig.
    pub(super) fn command(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.words).env("KUBECONFIG", kubeconfig).envs(self.ways.iter().copied());
        command
    }
}

/// Builds with the toolchain of each.
struct Builder {
    peers: PathBuf,
    /// Or takes what was built last.
    anew: bool,
}

impl Builder {
    fn rust(&self, package: &str) -> Result<PathBuf> {
        let place = target().join("bench-peers");
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.current_dir(&self.peers).args(["build", "--quiet", "--release", "--package", package]);
        self.run(build.arg("--target-dir").arg(&place))?;
        Ok(place.join("release").join(package))
    }

    fn go(&self) -> Result<PathBuf> {
        let program = target().join("bench-controller-runtime");
        let go = tools::go().context("controller-runtime needs Go 1.26: install it from https://go.dev/dl")?;
        let mut build = Command::new(go);
        build.current_dir(self.peers.join("controller-runtime")).args(["build", "-o"]).arg(&program).arg(".");
        self.run(&mut build)?;
        Ok(program)
    }

    fn python(&self) -> Result<(PathBuf, Vec<String>)> {
        let (environment, folder) = (target().join("bench-kopf-venv"), self.peers.join("kopf"));
        if !environment.join("bin/pip").is_file() {
            self.run(Command::new("python3").args(["-m", "venv"]).arg(&environment))
                .context("Kopf needs Python 3.10 or later with venv: install python3 and python3-venv")?;
        }
        self.run(
            Command::new(environment.join("bin/pip"))
                .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(folder.join("requirements.txt")),
        )?;
        let script = folder.join("widgets.py").display().to_string();
        let words = ["run", "--all-namespaces", "--standalone", "--quiet", &script].map(str::to_owned);
        Ok((environment.join("bin/kopf"), words.to_vec()))
    }

    fn run(&self, command: &mut Command) -> Result<()> {
        if self.anew { run(command) } else { Ok(()) }
    }
}
