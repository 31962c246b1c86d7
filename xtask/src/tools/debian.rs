//! Programs that come as Debian packages.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{on_path, run, which};

/// Programs used by tests, and the packages that carry them.
const PACKAGES: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("apt-get", "apt"), ("unshare", "util-linux")];

/// Installs the packages whose programs are missing.
pub(super) fn packages() -> Result<()> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { install(&missing) }
}

/// etcd, which the real API server keeps its objects in.
pub(crate) fn etcd() -> Result<PathBuf> {
    if let Some(path) = which("etcd") {
        return Ok(path);
    }
    install(&["etcd-server"])?;
    which("etcd").context("the package etcd-server brought no etcd; install etcd by hand and put it on the PATH")
}

/// Installs packages.
pub(super) fn install(packages: &[&str]) -> Result<()> {
    println!("tools: installing {} with apt-get", packages.join(", "));
    run(apt().args(["update", "-qq"]))?;
    run(apt().args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages))
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
