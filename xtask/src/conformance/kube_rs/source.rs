//! The sources of the tests: the crates that Windlass itself uses, from crates.io.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::{root, run as run_command};

/// The crates of one release; those with tests that need a cluster come first.
const CRATES: [&str; 5] = ["kube", "kube-client", "kube-runtime", "kube-core", "kube-derive"];
/// How many of them have such tests.
const TESTED: usize = 3;
/// What a crate's tests need of the crate above it. Cargo leaves it out of what it publishes, since each needs the other.
const CIRCLES: [(&str, &str); 2] =
    [("kube-client", r#"["derive", "client", "ws"]"#), ("kube-runtime", r#"["derive", "client", "runtime"]"#)];

/// A folder with the sources.
pub(super) struct Source {
    pub(super) folder: PathBuf,
    pub(super) release: String,
}

impl Source {
    /// The crates that have tests.
    pub(super) fn packages(&self) -> &'static [&'static str] {
        &CRATES[..TESTED]
    }
}

/// Copies the sources of the locked release; only their manifests are completed.
pub(super) fn prepare(place: &Path) -> Result<Source> {
    let packages = locked()?;
    let release = packages.first().context("kube is locked")?.1.clone();
    let folder = place.join(format!("kube-{release}"));
    if folder.is_dir() {
        return Ok(Source { folder, release });
    }
    let partial = place.join(format!("kube-{release}.{}.partial", std::process::id()));
    fs::create_dir_all(&partial)?;
    for (name, _, from) in &packages {
        run_command(Command::new("cp").args(["-r", "--no-preserve=mode"]).arg(from).arg(partial.join(name)))?;
        fs::remove_file(partial.join(name).join("Cargo.lock")).ok();
    }
    for (name, features) in CIRCLES {
        let manifest = partial.join(name).join("Cargo.toml");
        let text = fs::read_to_string(&manifest)?;
        let circle = format!("\n[dev-dependencies.kube]\nversion = \"={release}\"\nfeatures = {features}\n");
        fs::write(&manifest, text + &circle)?;
    }
    fs::write(partial.join("Cargo.toml"), workspace())?;
    // The same versions as in Windlass, as far as they are there.
    fs::copy(root().join("Cargo.lock"), partial.join("Cargo.lock"))?;
    fs::rename(&partial, &folder)?;
    Ok(Source { folder, release })
}

fn workspace() -> String {
    let patches: String = CRATES.iter().map(|name| format!("{name} = {{ path = \"{name}\" }}\n")).collect();
    let members = &CRATES[..TESTED];
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}\n[profile.dev]\ndebug = false\n"
    )
}

/// Name, release and folder of each crate, as Windlass uses it.
fn locked() -> Result<Vec<(&'static str, String, PathBuf)>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(["metadata", "--format-version", "1"]).output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo describes the workspace")?;
    let known = metadata["packages"].as_array().context("cargo lists packages")?;
    let find = |name: &'static str| {
        let package = known.iter().find(|package| package["name"] == name);
        let package = package.with_context(|| format!("{name} is not used by Windlass"))?;
        let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
        let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        Ok((name, package["version"].as_str().unwrap_or_default().to_owned(), folder.to_path_buf()))
    };
    CRATES.into_iter().map(find).collect()
}
