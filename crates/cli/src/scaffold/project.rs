//! The project that a command is called in, as Cargo knows it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::failure::Failure;

/// A project that `windlass init` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    /// Its folder.
    pub(crate) root: PathBuf,
    /// The name of its package and program.
    pub(crate) name: String,
    /// What groups end with.
    pub(crate) domain: String,
    /// Where Cargo puts what it builds.
    pub(crate) target: PathBuf,
}

impl Project {
    /// The project of a folder, or of one above it.
    pub(crate) fn find(folder: &Path) -> Result<Self, Failure> {
        if !folder.ancestors().any(|above| above.join("Cargo.toml").is_file()) {
            return Err(no_project(folder));
        }
        let output = cargo_output(cargo().current_dir(folder).args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ]))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::new(format!("Cargo cannot read the project: {}", said.trim())));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::new(format!("Cargo's answer cannot be read: {error}")))?;
        Self::of(&metadata, folder).ok_or_else(|| no_project(folder))
    }

    /// Among the packages of the workspace, the innermost that holds the folder and is made for Windlass.
    fn of(metadata: &Value, folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let target = PathBuf::from(metadata["target_directory"].as_str()?);
        let packages = metadata["packages"].as_array()?.iter().filter_map(|package| {
            let root = Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf();
            let domain = package["metadata"]["windlass"]["domain"].as_str()?.to_owned();
            let name = package["name"].as_str()?.to_owned();
            folder.starts_with(&root).then_some(Self { root, name, domain, target: target.clone() })
        });
        packages.max_by_key(|project| project.root.components().count())
    }

    /// The name of its crate in code.
    pub(crate) fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }

    /// Where its program is after `cargo build`.
    pub(crate) fn program(&self) -> PathBuf {
        self.target.join("debug").join(&self.name)
    }
}

/// Cargo as it is called from a shell; the one that runs this program, if one does. What that one told this program of
/// its own package would make build scripts believe that everything has changed.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_a_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

/// Whether a variable is one that Cargo sets for the programs of a package.
fn is_of_a_package(name: &str) -> bool {
    const NAMES: [&str; 3] = ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    const BEGINNINGS: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CFG_"];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Why Cargo does not start.
pub(crate) fn no_cargo(error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start cargo: {error}"))
        .advice("install Rust from https://rustup.rs, and have `cargo` in the PATH")
}

fn cargo_output(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| no_cargo(&error))
}

fn no_project(folder: &Path) -> Failure {
    Failure::new(format!("{}: no project of operators here or above", folder.display()))
        .advice("go to one, or make one with `windlass init NAME --domain example.com`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_innermost_package_made_for_windlass_is_the_project() {
        let package = |name: &str, root: &str, metadata: Value| json!({"name": name, "manifest_path": format!("{root}/Cargo.toml"), "metadata": metadata});
        let ours = json!({"windlass": {"domain": "example.com"}});
        let metadata = json!({"target_directory": "/w/target", "packages": [
            package("outer", "/w", ours.clone()),
            package("web-shop", "/w/shop", ours),
            package("plain", "/w/plain", Value::Null),
        ]});
        let name = |folder: &str| Project::of(&metadata, Path::new(folder)).map(|project| project.name);
        assert_eq!(name("/w/shop/src").as_deref(), Some("web-shop"));
        assert_eq!(name("/w/plain").as_deref(), Some("outer"));
        assert_eq!(name("/elsewhere"), None);
        let project = Project::of(&metadata, Path::new("/w/shop")).unwrap();
        assert_eq!((project.crate_name().as_str(), project.program()), ("web_shop", "/w/target/debug/web-shop".into()));
    }
}
