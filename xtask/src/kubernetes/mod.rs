//! A control plane of the real Kubernetes on this machine, and the tests of operators on it.

mod ground;
mod kubectl;
mod operation;
mod plane;
mod programs;
mod suites;

use anyhow::Result;
use clap::Subcommand;

/// What is done with it.
#[derive(Subcommand)]
pub(crate) enum Kubernetes {
    /// Start etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and print the kubeconfig.
    Up(plane::Options),
    /// End them.
    Down,
    /// Run the tests of operators, the same that run on the embedded cluster, on control planes of the real Kubernetes.
    Test(suites::Options),
}

/// The `kubernetes` task.
pub(crate) fn run(command: &Kubernetes) -> Result<()> {
    match command {
        Kubernetes::Up(options) => plane::up(options),
        Kubernetes::Down => plane::down(),
        Kubernetes::Test(options) => suites::run(options),
    }
}
