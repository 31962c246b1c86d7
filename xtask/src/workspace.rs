//! Where things are, and how commands are run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let dir = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    dir.map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// The directory that keeps built tools between checkouts.
pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()) {
        return Ok(PathBuf::from(dir).join("windlass/tools"));
    }
    let home = std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(PathBuf::from(home).join(".cache/windlass/tools"))
}

/// Runs a command to its end and fails when it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !status.success() {
        bail!("{:?} ended with {status}", command);
    }
    Ok(())
}

/// Whether a program of this name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    which(program).is_some()
}

/// Where on the PATH the program of this name is.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}
