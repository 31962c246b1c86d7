//! Programs that come as Debian packages.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{on_path, run};

/// Programs used by tests, and the packages that carry them.
const PACKAGES: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("apt-get", "apt"), ("unshare", "util-linux")];
/// Those of tests that only root can run.
const FOR_ROOT: [(&str, &str); 2] = [("ip", "iproute2"), ("runc", "runc")];

/// Installs the packages whose programs are missing.
pub(super) fn packages() -> Result<()> {
    let for_root = FOR_ROOT.iter().filter(|_| is_root());
    let missing = PACKAGES.iter().chain(for_root).filter(|(program, _)| !on_path(program));
    let missing: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if missing.is_empty() { Ok(()) } else { install(&missing) }
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
    let mut command = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
    if !is_root() {
        command.arg("apt-get");
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
