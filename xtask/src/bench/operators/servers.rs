//! The API servers that contenders work against, each with nothing but the resources in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use windlass_kubernetes::{ControlPlane, Controllers, Plan, Programs};

use super::phases::Measured;
use crate::kubernetes::programs::is_ready;
use crate::test::cargo;
use crate::tools;
use crate::workspace::{run, target};

/// An API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
pub(super) enum Server {
    /// kube-apiserver and etcd, which writes to the disk.
    Kubernetes,
    /// Windlass under their names, in memory.
    Windlass,
}

/// A server whose programs are there.
pub(super) struct Built {
    pub(super) server: Server,
    programs: Programs,
    /// kubectl of the pinned release, for both.
    pub(super) kubectl: PathBuf,
}

impl Server {
    /// For the names of files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Windlass => "windlass",
        }
    }

    /// For people.
    pub(super) fn text(self) -> String {
        match self {
            Self::Kubernetes => {
                format!("kube-apiserver {} and etcd {}, with fsync", tools::KUBERNETES, tools::ETCD)
            }
            Self::Windlass => "Windlass's own API server (`windlass envtest`), in memory".to_owned(),
        }
    }

    /// Finds the programs, and builds those that are missing, or ours `anew`.
    pub(super) fn build(self, anew: bool) -> Result<Built> {
        let (etcd, api_server) = match self {
            Self::Kubernetes => (tools::etcd()?, tools::kube_apiserver()?),
            Self::Windlass => windlass(anew)?,
        };
        // No controllers run.
        let programs = Programs { etcd, api_server, controller_manager: PathBuf::new(), scheduler: PathBuf::new() };
        Ok(Built { server: self, programs, kubectl: tools::kubectl()? })
    }
}

/// The results on each server.
pub(super) fn by_server(results: &[Measured]) -> Vec<(Server, Vec<Measured>)> {
    let of = |server: &Server| results.iter().filter(|it| it.server == *server).cloned().collect::<Vec<_>>();
    let all = Server::value_variants().iter().map(|server| (*server, of(server)));
    all.filter(|(_, results)| !results.is_empty()).collect()
}

impl Built {
    /// Starts the server with further flags, in an empty folder; when this returns, it is ready.
    pub(super) fn start(&self, folder: &Path, flags: Vec<String>) -> Result<ControlPlane> {
        let plan = Plan { controllers: Controllers::None, flags, ..Plan::default() };
        let ready = |kubeconfig: &Path| is_ready(&self.kubectl, kubeconfig);
        Ok(ControlPlane::start(&self.programs, folder, &plan, &ready)?)
    }
}

/// Windlass, which is what it is called.
fn windlass(anew: bool) -> Result<(PathBuf, PathBuf)> {
    if anew {
        run(cargo().args(["build", "--quiet", "--release", "--package", "windlass-cli"]))?;
    }
    let program = target().join("release/windlass");
    if !program.is_file() {
        bail!("{} is missing: leave --no-build out", program.display());
    }
    let folder = target().join("bench/operators/server");
    fs::create_dir_all(&folder)?;
    let links = ["etcd", "kube-apiserver"].map(|name| folder.join(name));
    for link in &links {
        fs::remove_file(link).ok();
        symlink(&program, link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    let [etcd, api_server] = links;
    Ok((etcd, api_server))
}
