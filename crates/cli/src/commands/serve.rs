//! The cluster's process: starts the cluster, installs the operators, and holds until it is told to stop.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_cluster::{AuditConfig, Cluster, ClusterConfig, Listen, Profile};
use windlass_controllers::FAKE_NODES_MAX;

use super::apply::{Applied, Mode, apply_all};
use crate::arguments::{ProfileName, ServeOptions, Target};
use crate::connection::dir;
use crate::failure::Failure;
use crate::isolation::IsolationName;
use crate::operators;

/// How long Pods wait for the next start of a cluster that was killed.
const SURVIVAL: Duration = Duration::from_secs(300);

/// A cluster that serves, and the operators that were put on it.
pub(crate) struct Serving {
    pub(crate) cluster: Cluster,
    pub(crate) operators: Vec<Applied>,
}

/// Runs the process of a detached cluster. Its first line of output tells the parent how the start went.
pub(crate) async fn run(options: ServeOptions, target: &Target) -> Result<(), Failure> {
    // A session of its own: the terminal that started it may go.
    rustix::process::setsid().ok();
    log_to_stderr();
    let started = start(&options, &dir(target)).await;
    tell_parent(&started);
    let mut serving = started?;
    let result = tokio::select! {
        result = stop_signal() => result,
        failure = serving.cluster.failure() => Err(Failure::new(failure.to_string())),
    };
    serving.cluster.shutdown().await;
    result
}

/// Starts the cluster and installs the operators.
pub(crate) async fn start(options: &ServeOptions, dir: &Path) -> Result<Serving, Failure> {
    check_nodes(options)?;
    check_isolation(options)?;
    let config = ClusterConfig {
        dir: Some(dir.to_path_buf()),
        profile: profile(options.profile),
        fake_nodes: options.nodes,
        listen: Listen::Port(options.port),
        audit: options.audit_log.clone().map(|log| AuditConfig { log, policy: options.audit_policy.clone() }),
        pods_max: options.max_pods,
        survival: SURVIVAL,
        isolation: options.isolation.map(IsolationName::isolation),
        network: options.pod_network,
        ..ClusterConfig::default()
    };
    let cluster = Cluster::start(config).await.map_err(|error| Failure::new(error.to_string()))?;
    match install(options, &cluster).await {
        Ok(operators) => Ok(Serving { cluster, operators }),
        Err(failure) => {
            cluster.shutdown().await;
            Err(failure)
        }
    }
}

/// Operators are ordinary workloads: without controllers and a node they could not run.
async fn install(options: &ServeOptions, cluster: &Cluster) -> Result<Vec<Applied>, Failure> {
    if options.no_operators || options.profile != ProfileName::Node {
        return Ok(Vec::new());
    }
    let program =
        std::env::current_exe().map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    let manifests = operators::manifests(&program);
    let mode = Mode { force: true, dry_run: false };
    let applied = apply_all(&cluster.client(), operators::NAMESPACE, &manifests, mode).await?;
    let applied: Vec<Applied> = applied.into_iter().collect::<Result<_, _>>()?;
    Ok(applied.into_iter().filter(|object| object.resource.kind == "Deployment").collect())
}

/// What keeps Pods apart needs Pods, and a range of their own needs networks of their own.
fn check_isolation(options: &ServeOptions) -> Result<(), Failure> {
    let chosen = options.isolation.filter(|name| name.isolation().has_networks());
    if let Some(name) = chosen.filter(|_| options.profile != ProfileName::Node) {
        let what = format!("--isolation {} is for real Pods", name.word());
        return Err(Failure::new(what).advice("leave --profile out"));
    }
    let is_loopback = options.pod_network.is_some_and(|range| !range.has_networks());
    if options.pod_network.is_some() && (chosen.is_none() || is_loopback) {
        return Err(Failure::new("--pod-network is for networks of Pods")
            .advice("add --isolation namespaces or --isolation runc, and choose a range such as 10.77.0.0/16"));
    }
    Ok(())
}

/// Only pretended nodes can be many.
fn check_nodes(options: &ServeOptions) -> Result<(), Failure> {
    if options.nodes != 1 && options.profile != ProfileName::Workloads {
        return Err(Failure::new("--nodes is for nodes that pretend").advice("add --profile workloads"));
    }
    match options.nodes {
        1..=FAKE_NODES_MAX => Ok(()),
        nodes => Err(Failure::new(format!("--nodes {nodes}: choose 1 to {FAKE_NODES_MAX}"))),
    }
}

fn profile(name: ProfileName) -> Profile {
    match name {
        ProfileName::Bare => Profile::Bare,
        ProfileName::Gc => Profile::Gc,
        ProfileName::Workloads => Profile::Workloads,
        ProfileName::Node => Profile::Node,
    }
}

fn tell_parent(started: &Result<Serving, Failure>) {
    let line = match started {
        Ok(_) => json!({"ready": true}),
        Err(failure) => failure.as_json(),
    };
    let mut output = std::io::stdout();
    // The parent may be gone; the cluster serves all the same.
    writeln!(output, "{line}").and_then(|()| output.flush()).ok();
}

/// Waits for Ctrl-C or a polite request to end.
pub(crate) async fn stop_signal() -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Logs go to standard error; WINDLASS_LOG chooses what.
pub(crate) fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("WINDLASS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // On a full disk a line is lost; to complain about that on the same disk would be a panic in whoever logs.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).log_internal_errors(false);
    log.try_init().ok();
}
