//! The pinned Kubernetes sources, as Go modules on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

/// The modules that hold the API definitions, with the versions of one Kubernetes release.
const MODULES: [(&str, &str); 6] = [
    ("k8s.io/kubernetes", "v1.36.3"),
    ("k8s.io/api", "v0.36.3"),
    ("k8s.io/apimachinery", "v0.36.3"),
    ("k8s.io/apiextensions-apiserver", "v0.36.3"),
    ("k8s.io/kube-aggregator", "v0.36.3"),
    ("k8s.io/metrics", "v0.36.3"),
];

/// Where each module lies on disk.
#[derive(Clone)]
pub(super) struct Source {
    directories: BTreeMap<&'static str, PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: Option<PathBuf>,
    error: Option<String>,
}

impl Source {
    /// Downloads the modules that are not in Go's cache yet.
    pub(super) fn fetch() -> anyhow::Result<Source> {
        let output = Command::new("go")
            .args(["mod", "download", "-json"])
            .args(MODULES.map(|(path, version)| format!("{path}@{version}")))
            // Outside of a module, Go takes the versions from the command line alone.
            .current_dir(std::env::temp_dir())
            .env("GOFLAGS", "-mod=mod")
            .output()
            .context("running `go mod download` (is Go installed?)")?;
        let mut directories = BTreeMap::new();
        for downloaded in serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Downloaded>() {
            let downloaded = downloaded.context("reading the answer of `go mod download`")?;
            let Some(dir) = downloaded.dir else {
                bail!("{}: {}", downloaded.path, downloaded.error.unwrap_or_default());
            };
            let (path, _) = MODULES.iter().find(|(path, _)| *path == downloaded.path).context("an unknown module")?;
            directories.insert(*path, dir);
        }
        if directories.len() != MODULES.len() {
            bail!("`go mod download` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(Source { directories })
    }

    /// The directory of the module `path`.
    pub(super) fn module(&self, path: &str) -> &Path {
        self.directories.get(path).expect("every module was downloaded")
    }

    /// Where a package or a file lies, by its import path.
    pub(super) fn locate(&self, import: &str) -> anyhow::Result<PathBuf> {
        let (module, directory) = self
            .directories
            .iter()
            .find(|(module, _)| import.strip_prefix(**module).is_some_and(|rest| rest.starts_with('/')))
            .with_context(|| format!("{import} is in no downloaded module"))?;
        Ok(directory.join(&import[module.len() + 1..]))
    }
}
