//! Programs that come as Debian packages.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{on_path, run};

/// Programs used by tests, and the packages that carry them.
const PACKAGES: [(&str, &str); 3] = [("dpkg-deb", "dpkg"), ("apt-get", "apt"), ("unshare", "util-linux")];

/// Installs the packages whose programs are missing.
pub(super) fn packages() -> Result<()> {
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| !on_path(program)).map(|(_, package)| *package).collect();
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
    let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
    if !root {
        command.arg("apt-get");
    }
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
