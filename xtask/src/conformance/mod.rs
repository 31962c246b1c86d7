//! Suites that other projects wrote for Kubernetes, run against Windlass.

mod controller_runtime;

use anyhow::Result;
use clap::Subcommand;

/// The suites.
#[derive(Subcommand)]
pub(crate) enum Suite {
    /// controller-runtime's envtest suites, next to the same run on the real kube-apiserver.
    ControllerRuntime(controller_runtime::Options),
}

/// The `conformance` task.
pub(crate) fn run(suite: &Suite) -> Result<()> {
    match suite {
        Suite::ControllerRuntime(options) => controller_runtime::run(options),
    }
}
