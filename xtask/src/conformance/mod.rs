//! Suites that other projects wrote for Kubernetes, run against Windlass.

mod controller_runtime;
mod differential;
mod ginkgo;
mod kube_rs;
mod kubernetes;

use anyhow::Result;
use clap::Subcommand;

/// The suites.
#[derive(Subcommand)]
pub(crate) enum Suite {
    /// controller-runtime's envtest suites, next to the same run on the real kube-apiserver.
    ControllerRuntime(controller_runtime::Options),
    /// Random requests to Windlass and to the real kube-apiserver, compared answer by answer.
    Differential(differential::Options),
    /// The tests of kube-rs that need a cluster.
    KubeRs(kube_rs::Options),
    /// Kubernetes' conformance tests that need no node, in its own end-to-end program.
    Kubernetes(kubernetes::Options),
}

/// The `conformance` task.
pub(crate) fn run(suite: &Suite) -> Result<()> {
    match suite {
        Suite::Differential(options) => differential::run(options),
        Suite::ControllerRuntime(options) => controller_runtime::run(options),
        Suite::KubeRs(options) => kube_rs::run(options),
        Suite::Kubernetes(options) => kubernetes::run(options),
    }
}
