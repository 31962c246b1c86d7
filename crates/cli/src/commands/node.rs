//! This machine as a node of a Kubernetes cluster.

use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;
use windlass_cluster::{ClusterRange, Isolation, JoinConfig, JoinedNode, PODS_DEFAULT, PODS_MAX, images_default};

use super::serve::{log_to_stderr, stop_signal};
use crate::arguments::Target;
use crate::connection::{config, dir};
use crate::failure::Failure;
use crate::isolation::IsolationName;

#[derive(Subcommand)]
pub(crate) enum NodeCommand {
    /// Run the Pods that the cluster of the kubeconfig gives to this machine, until told to stop.
    Join(JoinOptions),
}

#[derive(Args)]
pub(crate) struct JoinOptions {
    /// The name of the node [default: the machine's].
    #[arg(long)]
    name: Option<String>,
    /// How Pods are kept apart; only with networks of their own do Services lead to them.
    #[arg(long, value_enum, default_value = "sandbox")]
    isolation: IsolationName,
    /// The range whose upper half Pods have their addresses from, such as 10.77.0.0/16 [default: a range that is free].
    #[arg(long, value_name = "RANGE")]
    pod_network: Option<ClusterRange>,
    /// The address of the node [default: the one from which the API server is reached].
    #[arg(long)]
    address: Option<std::net::Ipv4Addr>,
    /// The port at which the API server asks for logs and sessions; 0 takes any.
    #[arg(long, default_value_t = 10250)]
    port: u16,
    /// How many Pods may run.
    #[arg(long, value_name = "NUMBER", default_value_t = PODS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=i64::from(PODS_MAX)))]
    max_pods: u32,
}

/// Joins, and stays until told to stop.
pub(crate) async fn run(command: &NodeCommand, target: &Target) -> Result<(), Failure> {
    let NodeCommand::Join(options) = command;
    log_to_stderr();
    let name = options.name.clone().unwrap_or_else(machine);
    let isolation = options.isolation.isolation();
    check_network(isolation, options.pod_network)?;
    let join = JoinConfig {
        api: config(target).await?,
        dir: dir(target).join(format!("node-{name}")),
        name: name.clone(),
        images: images_default(),
        isolation,
        network: options.pod_network,
        address: options.address,
        port: options.port,
        pods_max: options.max_pods,
    };
    let server = join.api.cluster_url.clone();
    let node = JoinedNode::new(join).await.map_err(|error| Failure::new(error.to_string()))?;
    println!("{name} joins {server} and answers at {}", node.address());
    let stop = CancellationToken::new();
    let told = stop.clone();
    let running = node.run(stop);
    tokio::pin!(running);
    tokio::select! {
        outcome = &mut running => return outcome.map_err(|error| Failure::new(error.to_string())),
        signal = stop_signal() => signal?,
    }
    told.cancel();
    running.await.map_err(|error| Failure::new(error.to_string()))
}

/// Pods that share the machine's network have addresses of the loopback range, the others do not.
fn check_network(isolation: Isolation, network: Option<ClusterRange>) -> Result<(), Failure> {
    match network {
        Some(range) if range.has_networks() != isolation.has_networks() => {
            Err(Failure::new(format!("--pod-network {range} does not suit --isolation")).advice(
                "choose a range such as 10.77.0.0/16 with --isolation namespaces or runc, and one such as 127.77.0.0/16 without",
            ))
        }
        _ => Ok(()),
    }
}

/// The machine's name, as a Node can have it.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().to_lowercase()
}
