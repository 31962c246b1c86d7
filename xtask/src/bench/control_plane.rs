//! A whole cluster whose nodes only seem to run Pods: Windlass, or the real API server with the real controllers and scheduler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::load::Background;
use super::process::Process;
use super::programs::Programs;
use super::server::{Server, Side, quiet};
use crate::tools;

/// The real controllers and scheduler.
pub(super) struct Real {
    manager: PathBuf,
    scheduler: PathBuf,
}

impl Real {
    /// Builds them, once per machine.
    pub(super) fn find() -> Result<Self> {
        Ok(Self { manager: tools::kube_controller_manager()?, scheduler: tools::kube_scheduler()? })
    }
}

/// A cluster that runs. Fields end in their order: whoever uses the server goes before it.
pub(super) struct ControlPlane {
    /// The nodes of the real side, whose cost is counted on neither side's account.
    _nodes: Option<Background>,
    controllers: Vec<Process>,
    pub(super) server: Server,
}

impl ControlPlane {
    /// A cluster with nothing but `nodes` nodes in it.
    pub(super) fn start(programs: &Programs, real: &Real, side: Side, nodes: usize) -> Result<Self> {
        let nodes = nodes.to_string();
        if side == Side::Windlass {
            let server = Server::windlass(programs, true, &["--profile", "workloads", "--nodes", &nodes])?;
            return Ok(Self { _nodes: None, controllers: Vec::new(), server });
        }
        let server = Server::start(programs, side, true)?;
        let dir = programs.work.join("real");
        let kubeconfig = dir.join("kubeconfig");
        let credentials = server.load.credentials();
        fs::write(&kubeconfig, windlass_kubernetes::kubeconfig(&credentials.server, &credentials.pki, "admin"))?;
        let controllers = vec![
            // Nodes that only pretend send no heartbeats.
            program(&real.manager, &kubeconfig, &["--node-monitor-grace-period=24h"], &dir)?,
            program(&real.scheduler, &kubeconfig, &[], &dir)?,
        ];
        let kubelets = server.load.background(&["kubelets", "--nodes", &nodes])?;
        Ok(Self { _nodes: Some(kubelets), controllers, server })
    }

    /// Processor time of everything but the pretended nodes of the real side, in seconds.
    pub(super) fn cpu(&self) -> Result<f64> {
        Ok(self.server.cpu()? + self.controllers.iter().map(Process::cpu).sum::<Result<f64>>()?)
    }

    /// Resident memory of the same, in bytes.
    pub(super) fn memory(&self) -> Result<f64> {
        Ok(self.server.memory()? + self.controllers.iter().map(Process::memory).sum::<Result<f64>>()?)
    }
}

/// A program of the real control plane. Its clients' own limits, 20 and 50 requests per second, are lifted: it is the
/// programs that are compared.
fn program(path: &Path, kubeconfig: &Path, arguments: &[&str], dir: &Path) -> Result<Process> {
    let mut command = Command::new(path);
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000", "--secure-port=0"])
        .args(arguments);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Process::start(quiet(&mut command, &dir.join(format!("{name}.log")))?)
}
