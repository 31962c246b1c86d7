//! Programs that the tests need and that we did not write: Debian packages, and kubectl built from its Go modules.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{cache, on_path, root, run as run_command};

/// The pinned Kubernetes release; `tools/kubectl/go.mod` names the modules of the same release.
const KUBERNETES: &str = "1.36.3";
/// The Go toolchain for machines whose own Go is too old to fetch one by itself.
const GO_TOOLCHAIN: &str = "v0.0.1-go1.26.8.linux-amd64";
/// Programs used by tests, and the Debian packages that carry them.
const PACKAGES: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("apt-get", "apt"), ("unshare", "util-linux")];

/// Installs everything and says where it is.
pub(crate) fn install() -> Result<PathBuf> {
    debian_packages()?;
    kubectl()
}

/// The `tools` task.
pub(crate) fn run() -> Result<()> {
    println!("kubectl: {}", install()?.display());
    Ok(())
}

fn debian_packages() -> Result<()> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { apt_install(&missing) }
}

fn apt_install(packages: &[&str]) -> Result<()> {
    println!("tools: installing {} with apt-get", packages.join(", "));
    run_command(apt().args(["update", "-qq"]))?;
    run_command(apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("install these packages by hand, then run this again: {}", packages.join(" ")))
}

/// apt-get as it is for root, through sudo for everyone else.
fn apt() -> Command {
    let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
    if !root {
        command.arg("apt-get");
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// kubectl of the pinned release, built once per machine.
pub(crate) fn kubectl() -> Result<PathBuf> {
    let target = cache()?.join(format!("kubectl-{KUBERNETES}"));
    if target.is_file() {
        return Ok(target);
    }
    let go = go()?;
    println!("tools: building kubectl {KUBERNETES} from its Go modules (two or three minutes, once)");
    fs::create_dir_all(cache()?)?;
    let partial = target.with_extension(format!("{}.partial", std::process::id()));
    let version = "k8s.io/component-base/version";
    let minor = KUBERNETES.split('.').nth(1).expect("a release has a minor");
    run_command(
        Command::new(go)
            .current_dir(root().join("tools/kubectl"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-ldflags"])
            .arg(format!(
                "-s -w -X {version}.gitVersion=v{KUBERNETES} -X {version}.gitMajor=1 -X {version}.gitMinor={minor}"
            ))
            .arg("-o")
            .arg(&partial)
            .arg("."),
    )?;
    fs::rename(&partial, &target)?;
    Ok(target)
}

/// A Go that can build the pinned release: the machine's, or a toolchain module fetched with Debian's older one.
fn go() -> Result<PathBuf> {
    if !on_path("go") {
        apt_install(&["golang-go", "ca-certificates"])?;
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
