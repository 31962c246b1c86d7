//! Building each implementation, with its own toolchain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tools;
use crate::workspace::{on_path, root, run};

/// How an implementation is started, and what a cluster needs for it.
pub(super) struct Program {
    /// The command with its arguments.
    pub(super) command: Vec<String>,
    /// Manifests in the order in which to apply them, without the Deployment of the operator itself.
    pub(super) manifests: Vec<PathBuf>,
    /// The ClusterRole that says what the operator may.
    pub(super) role: &'static str,
}

/// Builds the implementation `name` that lies in `folder`; `place` is where built things go.
pub(super) fn build(name: &str, folder: &Path, place: &Path, windlass: &Path) -> Result<Program> {
    println!("{name}: building");
    match name {
        "windlass" => own(place, windlass),
        "kubebuilder" => kubebuilder(folder, place),
        "kopf" => kopf(folder, place),
        "kube" => kube(folder, place),
        other => bail!("nobody knows how to build {other}"),
    }
}

/// Ours is a part of the `windlass` program and prints its manifests.
fn own(place: &Path, windlass: &Path) -> Result<Program> {
    let output = Command::new(windlass)
        .args(["operator", "memcached-operator", "manifests"])
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", windlass.display()))?;
    let text = String::from_utf8(output.stdout)?;
    // The operator runs beside the cluster: it needs no Deployment, and nobody would answer for its webhook.
    let is_needed = |document: &&str| {
        let has = |kind: &str| document.lines().any(|line| line == format!("kind: {kind}"));
        !has("Deployment") && !has("ValidatingWebhookConfiguration")
    };
    let needed: Vec<&str> = text.split("---\n").filter(is_needed).collect();
    let manifests = place.join("windlass.yaml");
    fs::write(&manifests, needed.join("---\n"))?;
    let addresses = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let words = [&["operator", "memcached-operator", "run"][..], &addresses].concat();
    Ok(Program { command: command(windlass, &words), manifests: vec![manifests], role: "memcached-operator" })
}

fn kubebuilder(folder: &Path, place: &Path) -> Result<Program> {
    let program = place.join("kubebuilder-operator");
    let go = tools::go().context("kubebuilder's operator needs Go 1.26: install it from https://go.dev/dl")?;
    run(Command::new(&go).current_dir(folder).args(["build", "-o"]).arg(&program).arg("./cmd"))?;
    let manifests = [
        "manager/namespace.yaml",
        "crd/bases/cache.example.com_memcacheds.yaml",
        "rbac/service_account.yaml",
        "rbac/role.yaml",
        "rbac/role_binding.yaml",
    ];
    let manifests = manifests.map(|file| folder.join("config").join(file)).to_vec();
    let words = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
    Ok(Program { command: command(&program, &words), manifests, role: "manager-role" })
}

fn kopf(folder: &Path, place: &Path) -> Result<Program> {
    let python = "python3";
    if !on_path(python) {
        bail!("Kopf's operator needs Python 3.10 or later with venv: install python3 and python3-venv");
    }
    let environment = place.join("kopf-venv");
    if !environment.join("bin/pip").is_file() {
        run(Command::new(python).args(["-m", "venv"]).arg(&environment))
            .context("python3 cannot make an environment: install python3-venv")?;
    }
    run(Command::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(folder.join("requirements.txt")))?;
    let script = folder.join("memcached.py").display().to_string();
    let words = ["run", "--all-namespaces", "--standalone", &script];
    let manifests = vec![folder.join("deploy/crd.yaml"), folder.join("deploy/rbac.yaml")];
    Ok(Program { command: command(&environment.join("bin/kopf"), &words), manifests, role: "memcached-operator" })
}

fn kube(folder: &Path, place: &Path) -> Result<Program> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = place.join("kube-target");
    run(Command::new(cargo).current_dir(root()).args(["build", "--quiet", "--locked", "--manifest-path"]).args([
        folder.join("Cargo.toml").as_os_str(),
        "--target-dir".as_ref(),
        target.as_os_str(),
    ]))?;
    let program = target.join("debug/memcached-operator-kube");
    let definition = Command::new(&program).arg("crd").output()?.stdout;
    if definition != fs::read(folder.join("deploy/crd.yaml"))? {
        bail!("{} is not what the operator prints: write it anew", folder.join("deploy/crd.yaml").display());
    }
    let manifests = vec![folder.join("deploy/crd.yaml"), folder.join("deploy/rbac.yaml")];
    Ok(Program { command: command(&program, &[]), manifests, role: "memcached-operator" })
}

fn command(program: &Path, words: &[&str]) -> Vec<String> {
    std::iter::once(program.display().to_string()).chain(words.iter().map(|word| (*word).to_owned())).collect()
}
