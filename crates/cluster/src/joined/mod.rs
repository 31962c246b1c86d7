//! A node of somebody else's cluster: Windlass runs the Pods that a Kubernetes API server gives to this machine.

mod addresses;
mod door;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_node::{Node, NodeConfig};

use crate::lock::Lock;
use crate::{ClusterRange, Directory, Identity, Isolation, PODS_MAX, StartError};
use addresses::Addresses;
use door::Door;

/// What a node is told that joins a cluster.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// The way to the API server, and who the node is there.
    pub api: Config,
    /// The name of its Node object.
    pub name: String,
    /// Where it keeps its Pods.
    pub dir: PathBuf,
    /// The image store, which others may share.
    pub images: PathBuf,
    /// How Pods are kept apart.
    pub isolation: Isolation,
    /// The range whose upper half Pods have their addresses from; one that is free if nothing is said.
    pub network: Option<ClusterRange>,
    /// Its own address; the one that it reaches the API server from if nothing is said.
    pub address: Option<Ipv4Addr>,
    /// The port at which it answers what is asked of a kubelet; 0 takes any.
    pub port: u16,
    /// How many Pods it accepts, at most [`PODS_MAX`].
    pub pods_max: u32,
}

/// A node that has joined a cluster.
pub struct JoinedNode {
    node: Arc<Node>,
    door: Door,
    listener: TcpListener,
    network: Option<windlass_node::network::Network>,
    _lock: Lock,
    address: SocketAddr,
}

impl JoinedNode {
    /// Takes its directory, addresses and port; nothing is said to the cluster yet.
    ///
    /// # Errors
    /// [`StartError`] says what is in the way and what to do about it.
    pub async fn new(config: JoinConfig) -> Result<Self, StartError> {
        let directory = Directory::create(&config.dir)?;
        let lock = Lock::take(&directory)?;
        let client = Client::try_from(config.api.clone()).map_err(StartError::Api)?;
        let mut addresses = Addresses::find(&config, &client).await?;
        let wanted = SocketAddr::from((addresses.own, config.port));
        let listener =
            TcpListener::bind(wanted).await.map_err(|source| StartError::Listen { address: wanted, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Listen { address: wanted, source })?;
        let shown = Identity::self_signed(&[address.ip()])?;
        let authority = config.api.root_cert.clone().unwrap_or_default();
        let tls = door::tls(&shown, &authority)?;
        let (network, runc) = addresses.begin(&directory, config.isolation)?;
        let settings = NodeConfig {
            client: client.clone(),
            name: config.name.clone(),
            dir: directory.node(),
            images: config.images,
            address: addresses.own,
            port: Some(address.port()),
            api: addresses.api,
            pod_range: addresses.pods,
            service_range: addresses.services,
            survival: std::time::Duration::ZERO,
            network: network.clone(),
            runc,
            cgroups: true,
            pods_max: config.pods_max.min(PODS_MAX),
            cluster_domain: "cluster.local".to_owned(),
        };
        let node = Arc::new(Node::new(settings).await?);
        let door = Door { node: Arc::clone(&node), client, name: config.name, tls };
        Ok(Self { node, door, listener, network, _lock: lock, address })
    }

    /// Where it answers what is asked of a kubelet.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers the node and runs Pods until told to stop; then ends every process of every Pod.
    ///
    /// # Errors
    /// Only at the start: afterwards the node outlives every failure of the API server.
    pub async fn run(self, stop: CancellationToken) -> Result<(), StartError> {
        let serving = tokio::spawn(self.door.serve(self.listener, stop.clone()));
        let outcome = self.node.run(stop.clone()).await;
        stop.cancel();
        let _ = serving.await;
        if let Some(network) = self.network {
            let _ = tokio::task::spawn_blocking(move || network.end()).await;
        }
        Ok(outcome?)
    }
}
