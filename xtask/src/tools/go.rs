//! The Go toolchain, and programs built with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::debian;
use crate::workspace::{cache, on_path, root, run};

/// The Go toolchain for machines whose own Go is too old to fetch one by itself.
const GO_TOOLCHAIN: &str = "v0.0.1-go1.26.8.linux-amd64";

/// What of a package becomes a program.
#[derive(Clone, Copy)]
pub(super) enum Package<'a> {
    /// Its `main`.
    Program(&'a str),
    /// Its tests.
    Tests(&'a str),
}

/// Builds `package` with the module in `folder` of the workspace.
pub(super) fn build(folder: &str, package: Package<'_>, linker_flags: &str, output: &Path) -> Result<()> {
    let (how, package): (&[&str], _) = match package {
        Package::Program(package) => (&["build"], package),
        Package::Tests(package) => (&["test", "-c", "-vet=off"], package),
    };
    run(Command::new(go()?)
        .current_dir(root().join(folder))
        .env("CGO_ENABLED", "0")
        .args(how)
        .args(["-trimpath", "-ldflags", linker_flags, "-o"])
        .arg(output)
        .arg(package))
}

/// Where the source of a module is that the module in `folder` of the workspace needs.
pub(super) fn source(folder: &str, module: &str) -> Result<PathBuf> {
    let mut ask = Command::new(go()?);
    ask.current_dir(root().join(folder)).args(["mod", "download", "-json", module]);
    let answer = ask.output().context("cannot start go")?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).context("go mod download gave no answer")?;
    answer["Dir"].as_str().map(PathBuf::from).with_context(|| format!("there is no source of {module}: {answer}"))
}

/// A Go that can build the pinned release: the machine's, or a toolchain module fetched with Debian's older one.
pub(crate) fn go() -> Result<PathBuf> {
    if !on_path("go") {
        debian::install(&["golang-go", "ca-certificates"])?;
    }
    if go_minor("go")? >= 21 {
        return Ok(PathBuf::from("go")); // From 1.21 on, Go fetches the toolchain that go.mod asks for.
    }
    println!("tools: fetching the Go toolchain {GO_TOOLCHAIN} as a module");
    let scratch = cache()?.join("go-bootstrap");
    fs::create_dir_all(&scratch)?;
    fs::write(scratch.join("go.mod"), "module bootstrap\n")?;
    let answer = Command::new("go")
        .current_dir(&scratch)
        .args(["mod", "download", "-json", &format!("golang.org/toolchain@{GO_TOOLCHAIN}")])
        .output()?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).context("go mod download gave no answer")?;
    let Some(dir) = answer["Dir"].as_str() else {
        bail!("the Go toolchain could not be fetched: {}", answer["Error"]);
    };
    make_executable(&Path::new(dir).join("bin"))?;
    make_executable(&Path::new(dir).join("pkg/tool/linux_amd64"))?;
    Ok(Path::new(dir).join("bin/go"))
}

/// The minor of `go version go1.26.8 linux/amd64`.
fn go_minor(go: &str) -> Result<u32> {
    let output = Command::new(go).arg("version").output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = text.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ', 'r', 'b']).next()?.parse().ok());
    minor.with_context(|| format!("cannot read the version of Go from {text:?}"))
}

/// Module archives carry no mode bits, so the programs in them must be made executable.
fn make_executable(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("no {}", dir.display()))? {
        let path = entry?.path();
        let mut mode = fs::metadata(&path)?.permissions();
        mode.set_mode(mode.mode() | 0o111);
        fs::set_permissions(&path, mode)?;
    }
    Ok(())
}
