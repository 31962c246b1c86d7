//! A cluster: started, used, stopped.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use kube::Client;
use windlass_apiserver::audit::{AuditLog, Policy};
use windlass_apiserver::auth::{Auth, ISSUER_DEFAULT, SigningKey, TokenIssuer, User};
use windlass_apiserver::bootstrap::{Bootstrap, bootstrap};
use windlass_apiserver::server::{self, Tls};
use windlass_apiserver::system::{Component, Running};
use windlass_apiserver::{AddressRange, Api, Config, FrontProxy};
use windlass_controllers::{Controllers, Name, Set, VolumeStore};
use windlass_node::network::Network;
use windlass_node::runc::Runc;
use windlass_node::{Capabilities, Node, NodeConfig};
use windlass_store::Store;

use crate::address::Taken;
use crate::directory::write_private;
use crate::lock::Lock;
use crate::node::{NodeDoor, install_chaos, node_config};
use crate::pki::Pki;
use crate::renewal::Renewal;
use crate::tasks::{Failure, Failures, Group, failures};
use crate::{AuditConfig, ClusterConfig, ClusterRange, Directory, Kubeconfig, Listen, Profile, StartError, address};

/// A running cluster.
///
/// [`Cluster::shutdown`] ends it in order; dropping it tells every part to stop without waiting.
#[derive(Debug)]
pub struct Cluster {
    api: Api,
    pki: Pki,
    kubeconfig: Option<Kubeconfig>,
    capabilities: Option<Capabilities>,
    failures: Failures,
    // In the order in which they stop: whoever makes work, whoever does it, whoever is asked.
    controllers: Group,
    node: Group,
    servers: Group,
    network: Option<Network>,
    _lock: Option<Lock>,
}

/// Where a cluster is: its addresses and what it listens with.
struct Place {
    directory: Option<Directory>,
    lock: Option<Lock>,
    range: ClusterRange,
    listener: Option<std::net::TcpListener>,
    network: Option<Network>,
    runc: Option<Runc>,
    address: SocketAddr,
}

impl Cluster {
    /// Starts a cluster; when this returns, it answers.
    ///
    /// # Errors
    /// [`StartError`] says what is in the way and what to do about it.
    pub async fn start(config: ClusterConfig) -> Result<Self, StartError> {
        let mut place = Place::take(&config)?;
        let pki = place.pki()?;
        let store = place.store()?;
        let door = Arc::new(NodeDoor::new(&config));
        let api = api(&config, &place, &pki, store, door.clone())?;
        let (failed, failures) = failures();
        let cluster = Cluster {
            api,
            pki,
            kubeconfig: None,
            capabilities: None,
            failures,
            controllers: Group::new(failed.clone()),
            node: Group::new(failed.clone()),
            servers: Group::new(failed),
            network: place.network.clone(),
            _lock: place.lock.take(),
        };
        cluster.run(&config, place, &door).await
    }

    /// Starts the parts; should one not start, those that did are stopped.
    async fn run(mut self, config: &ClusterConfig, mut place: Place, door: &NodeDoor) -> Result<Self, StartError> {
        match self.start_parts(config, &mut place, door).await {
            Ok(()) => Ok(self),
            Err(error) => {
                self.shutdown().await;
                Err(error)
            }
        }
    }

    async fn start_parts(
        &mut self,
        config: &ClusterConfig,
        place: &mut Place,
        door: &NodeDoor,
    ) -> Result<(), StartError> {
        let first = Bootstrap {
            endpoint: place.address,
            service_address: IpAddr::V4(place.range.api()),
            service_range: self.api.config().service_range,
            client_ca: Some(self.pki.authority.clone()),
            front_proxy_ca: Some(self.pki.front_proxy_authority.clone()),
            serves_metrics: self.api.config().serves_metrics,
        };
        bootstrap(self.api.store(), &first, config.clock.now()).await?;
        if let Some((kubeconfig, tls)) = place.serve(&self.api, &self.pki, &self.servers)? {
            self.renew_certificates(config, place, tls, &kubeconfig);
            self.kubeconfig = Some(kubeconfig);
        }
        self.api.system().health.set_bootstrapped();
        self.start_controllers(config, place, door);
        if config.profile == Profile::Node {
            self.start_node(config, place, door).await?;
        }
        Ok(())
    }

    /// A client with every right, within this process.
    pub fn client(&self) -> Client {
        self.client_of(User::master("windlass-admin"))
    }

    /// A client of `user`, within this process.
    pub fn client_of(&self, user: User) -> Client {
        client_of(&self.api, user)
    }

    /// The API server.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// How clients outside of this process reach the cluster; `None` if it does not listen.
    pub fn kubeconfig(&self) -> Option<&Kubeconfig> {
        self.kubeconfig.as_ref()
    }

    /// Listens on any port of this machine's loopback address until the cluster ends, so that programs outside of this
    /// process can look into a cluster that listens nowhere.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn listen(&self) -> Result<Kubeconfig, StartError> {
        let listener = address::bind((IpAddr::from([127, 0, 0, 1]), 0).into())?;
        let range = ClusterRange::first();
        let address = local_address(Some(&listener), range)?;
        let mut place =
            Place { directory: None, lock: None, range, listener: Some(listener), network: None, runc: None, address };
        let served = place.serve(&self.api, &self.pki, &self.servers)?;
        let (kubeconfig, _) = served.expect("a place with a listener is served");
        Ok(kubeconfig)
    }

    /// What the kernel lets the node do; `None` if there is no node.
    pub fn capabilities(&self) -> Option<Capabilities> {
        self.capabilities
    }

    /// Waits until a part of the cluster ends by itself, which it should not.
    pub async fn failure(&mut self) -> Failure {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// Ends the cluster: every process of every Pod, open requests, the store. The objects stay.
    pub async fn shutdown(mut self) {
        self.api.system().health.set_stopping();
        self.controllers.stop().await;
        self.node.stop().await;
        self.api.shutdown().cancel();
        self.servers.stop().await;
        self.api.store().close().await;
        if let Some(network) = self.network.take() {
            let _ = tokio::task::spawn_blocking(move || network.end()).await;
        }
    }

    /// Keeps the certificates of a cluster with a directory from ending while it runs.
    fn renew_certificates(&self, config: &ClusterConfig, place: &Place, tls: Tls, kubeconfig: &Kubeconfig) {
        let Some(directory) = &place.directory else { return };
        let renewal = Renewal {
            directory: directory.clone(),
            addresses: place.addresses().to_vec(),
            api: self.api.clone(),
            tls,
            kubeconfig: kubeconfig.clone(),
            clock: config.clock.clone(),
        };
        self.servers.spawn("renewal of certificates", renewal.run(self.servers.token()));
    }

    fn start_controllers(&self, config: &ClusterConfig, place: &Place, door: &NodeDoor) {
        let set = config.controllers();
        if set == Set::none() {
            return;
        }
        let client = self.client_of(User::master("system:kube-controller-manager"));
        let mut controllers = Controllers::new(client, set)
            .clock(config.clock.clone())
            .root_ca(self.pki.authority.clone())
            .fake_nodes(config.fake_nodes)
            .fake_usage(door.fake_usage());
        if let Some(directory) = &place.directory {
            let store = VolumeStore { directory: directory.volumes(), remove: windlass_node::tree::remove };
            controllers = controllers.volumes(store);
        }
        let (stop, running) = (self.controllers.token(), self.components(config));
        self.controllers.spawn("controllers", async move {
            let ended = controllers.run(stop).await;
            drop(running);
            ended
        });
    }

    /// Says that the parts run that the controllers stand for.
    fn components(&self, config: &ClusterConfig) -> Vec<Running> {
        let has_scheduler = config.controllers().has(Name::Scheduler);
        let has_others = config.controllers().without(Name::Scheduler) != Set::none();
        let parts = [(Component::Scheduler, has_scheduler), (Component::ControllerManager, has_others)];
        let components = &self.api.system().components;
        parts.into_iter().filter(|(_, runs)| *runs).map(|(part, _)| components.begin(part)).collect()
    }

    async fn start_node(&mut self, config: &ClusterConfig, place: &Place, door: &NodeDoor) -> Result<(), StartError> {
        let directory = place.directory.as_ref().ok_or(StartError::NodeNeedsDirectory)?;
        let user = User::new(format!("system:node:{}", config.node_name), ["system:nodes", "system:masters"]);
        let client = self.client_of(user);
        install_chaos(&client).await;
        let settings = node_config(config, directory.node(), place.range, place.address.port(), client);
        let settings = NodeConfig { network: place.network.clone(), runc: place.runc.clone(), ..settings };
        let node = Arc::new(Node::new(settings).await?);
        self.capabilities = Some(node.capabilities());
        door.open(Arc::clone(&node));
        let stop = self.node.token();
        self.node.spawn("node", async move { node.run(stop).await });
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.api.shutdown().cancel();
    }
}

impl Place {
    fn take(config: &ClusterConfig) -> Result<Self, StartError> {
        let port = match config.listen {
            Listen::Nowhere => None,
            Listen::Port(port) => Some(port),
        };
        let Some(dir) = &config.dir else {
            let range = ClusterRange::first();
            let listener = port.map(|port| address::bind((IpAddr::from([127, 0, 0, 1]), port).into())).transpose()?;
            let address = local_address(listener.as_ref(), range)?;
            return Ok(Place { directory: None, lock: None, range, listener, network: None, runc: None, address });
        };
        let directory = Directory::create(dir)?;
        let lock = Lock::take(&directory)?;
        let Taken { range, listener, network, runc } = address::listen(&directory, port, config)?;
        let address = local_address(listener.as_ref(), range)?;
        Ok(Place { directory: Some(directory), lock: Some(lock), range, listener, network, runc, address })
    }

    fn store(&self) -> Result<Store, StartError> {
        let Some(directory) = &self.directory else { return Ok(Store::in_memory()) };
        directory.refuse_earlier_store()?;
        Ok(Store::open(directory.store())?)
    }

    /// The addresses that the API server is reached at.
    fn addresses(&self) -> [IpAddr; 3] {
        [self.address.ip(), IpAddr::V4(self.range.api()), IpAddr::from([127, 0, 0, 1])]
    }

    fn pki(&self) -> Result<Pki, StartError> {
        let addresses = self.addresses();
        Ok(match &self.directory {
            Some(directory) => Pki::in_directory(&directory.pki(), &addresses)?,
            None => Pki::in_memory(&addresses)?,
        })
    }

    /// Answers connections, and says so in the kubeconfig.
    fn serve(&mut self, api: &Api, pki: &Pki, servers: &Group) -> Result<Option<(Kubeconfig, Tls)>, StartError> {
        let Some(listener) = self.listener.take() else { return Ok(None) };
        let listen = |source| StartError::Listen { address: self.address, source };
        listener.set_nonblocking(true).map_err(listen)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(listen)?;
        let server = &pki.server;
        let tls = Tls::new(server.certificate.as_bytes(), server.key.as_bytes(), pki.authority.as_bytes())?;
        let (api, stop, shown) = (api.clone(), servers.token(), tls.clone());
        servers.spawn("API server", async move {
            server::serve(listener, Some(shown), api, stop).await;
            Ok::<_, Infallible>(())
        });
        let kubeconfig = Kubeconfig {
            server: format!("https://{}", self.address),
            authority: pki.authority.clone(),
            identity: pki.admin.clone(),
        };
        if let Some(path) = self.directory.as_ref().map(Directory::kubeconfig) {
            let text = kubeconfig.to_string();
            write_private(&path, text.as_bytes()).map_err(|source| StartError::file(&path, source))?;
        }
        Ok(Some((kubeconfig, tls)))
    }
}

fn local_address(listener: Option<&std::net::TcpListener>, range: ClusterRange) -> Result<SocketAddr, StartError> {
    let elsewhere = SocketAddr::from((range.api(), 6443));
    match listener {
        None => Ok(elsewhere),
        Some(listener) => listener.local_addr().map_err(|source| StartError::Listen { address: elsewhere, source }),
    }
}

fn api(config: &ClusterConfig, place: &Place, pki: &Pki, store: Store, door: Arc<NodeDoor>) -> Result<Api, StartError> {
    let issuer = TokenIssuer::new(ISSUER_DEFAULT, SigningKey::from_pkcs8(&pki.token_key)?, []);
    let auth = Auth::new(store.clone()).with_static_tokens(config.tokens.clone()).with_issuer(issuer);
    let (network, bits) = place.range.services();
    let settings = Config {
        address: place.address.to_string(),
        service_range: AddressRange::new(network, bits),
        plugins: config.plugins(),
        node_proxy: Some(door),
        serves_metrics: config.controllers().has(Name::HorizontalPodAutoscaler),
        clock: config.clock.clone(),
        audit: config.audit.as_ref().map(audit_log).transpose()?,
        front_proxy: Some(FrontProxy {
            certificate: pki.front_proxy.certificate.clone(),
            key: pki.front_proxy.key.clone(),
        }),
        ..Config::default()
    };
    Ok(Api::new(store, auth, settings))
}

fn audit_log(config: &AuditConfig) -> Result<Arc<AuditLog>, StartError> {
    let policy = match &config.policy {
        None => Policy::default(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|source| StartError::file(path, source))?;
            Policy::parse(&text).map_err(|source| StartError::AuditPolicy { path: path.clone(), source })?
        }
    };
    Ok(Arc::new(AuditLog::open(&config.log, policy)?))
}

fn client_of(api: &Api, user: User) -> Client {
    Client::new(server::local(api, user), "default")
}
