//! The programs of the pinned release, built once per machine, under the names that they have upstream.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::tools;
use crate::workspace::target;

/// Where everything of this task is.
pub(crate) fn place() -> PathBuf {
    target().join("kubernetes")
}

/// A folder with the programs of a control plane, and kubectl.
pub(crate) fn folder() -> Result<PathBuf> {
    let folder = place().join("programs");
    fs::create_dir_all(&folder)?;
    let programs = [
        ("etcd", tools::etcd()?),
        ("kube-apiserver", tools::kube_apiserver()?),
        ("kube-controller-manager", tools::kube_controller_manager()?),
        ("kube-scheduler", tools::kube_scheduler()?),
        ("kubectl", tools::kubectl()?),
    ];
    for (name, path) in programs {
        let link = folder.join(name);
        fs::remove_file(&link).ok();
        symlink(&path, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(folder)
}

/// Whether the API server of a kubeconfig is ready, with what is there from the start.
pub(crate) fn is_ready(kubectl: &Path, kubeconfig: &Path) -> bool {
    let asks = [["get", "--raw", "/readyz"], ["get", "namespace", "default"]];
    asks.iter().all(|arguments| {
        let mut command = Command::new(kubectl);
        command.arg("--kubeconfig").arg(kubeconfig).arg("--request-timeout=5s").args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}
