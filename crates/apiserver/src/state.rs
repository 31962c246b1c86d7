//! The API server as a value: everything that requests share.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    ops::RangeInclusive,
    panic::AssertUnwindSafe,
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response};
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;
use windlass_store::{CommitError, Revision, Snapshot, Store};

use crate::{
    Body, NodeProxy,
    address::AddressRange,
    admission::{Admission, Plugins, keep_status},
    aggregation::{self, Extensions, FrontProxy, Remotes},
    audit::AuditLog,
    auth::{Auth, Peer, rbac::keep_aggregated},
    crd,
    discovery::Discovery,
    flow::{self, Flows},
    handler,
    openapi::OpenApi,
    proxy::Proxy,
    registry::Registry,
    system::System,
    upkeep,
    webhook::Webhooks,
};

/// What one API server is told about its world.
#[derive(Clone)]
pub struct Config {
    /// Where clients reach the server: host and port.
    pub address: String,
    /// The addresses that Services get.
    pub service_range: AddressRange,
    /// The ports that Services of type NodePort get.
    pub node_ports: RangeInclusive<u16>,
    /// The admission plugins.
    pub plugins: Plugins,
    /// Whether discovery has an aggregated form; without it clients ask group by group.
    pub aggregated_discovery: bool,
    /// The way to the agents of the nodes; without it there are no logs.
    pub node_proxy: Option<Arc<dyn NodeProxy>>,
    /// Whether `metrics.k8s.io` is served from what nodes say.
    pub serves_metrics: bool,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where requests are logged, if anywhere.
    pub audit: Option<Arc<AuditLog>>,
    /// What is shown to servers that answer for groups of their own.
    pub front_proxy: Option<FrontProxy>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:6443".to_owned(),
            service_range: AddressRange::new([10, 96, 0, 0].into(), 16),
            node_ports: 30_000..=32_767,
            plugins: Plugins::default(),
            aggregated_discovery: true,
            node_proxy: None,
            serves_metrics: false,
            clock: Clock::system(),
            audit: None,
            front_proxy: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("address", &self.address)
            .field("service_range", &self.service_range)
            .field("node_ports", &self.node_ports)
            .finish_non_exhaustive()
    }
}

/// One API server; a clone is the same server.
#[derive(Clone, Debug)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    registry: Arc<Registry>,
    auth: Arc<Auth>,
    admission: Admission,
    webhooks: Arc<Webhooks>,
    extensions: Arc<Extensions>,
    remotes: Arc<Remotes>,
    system: System,
    discovery: Discovery,
    openapi: OpenApi,
    flows: Arc<Flows>,
    proxy: Proxy,
    config: Config,
    shutdown: CancellationToken,
    /// Held from the choice of an address or port until the object that has it is stored.
    allocation: Arc<Mutex<()>>,
    /// Held from the look at the quotas of a namespace until the object that they are charged for is stored.
    quota_turns: [Mutex<()>; QUOTA_TURNS],
}

/// How many namespaces can have their quotas charged at the same time.
const QUOTA_TURNS: usize = 16;

impl Api {
    /// The API over `store`, with the kinds of the definitions in it.
    ///
    /// What the server itself looks after (the life of definitions, aggregated roles, old events) runs as tasks of the current tokio runtime
    /// until [`Api::shutdown`] is cancelled.
    pub fn new(store: Store, auth: Auth, config: Config) -> Self {
        let api = Self::idle(store, auth, config);
        let (store, clock, stop) = (api.store().clone(), api.clock().clone(), api.shutdown().clone());
        tokio::spawn(crd::run(store.clone(), Arc::clone(api.registry()), clock.clone(), stop.clone()));
        tokio::spawn(keep_aggregated(store.clone(), stop.clone()));
        tokio::spawn(keep_status(store.clone(), Arc::clone(api.registry()), stop.clone()));
        tokio::spawn(aggregation::keep(store.clone(), Arc::clone(api.registry()), stop.clone()));
        let (remotes, extensions) = (Arc::clone(&api.0.remotes), Arc::clone(&api.0.extensions));
        tokio::spawn(aggregation::keep_remote(store.clone(), remotes, extensions, stop.clone()));
        tokio::spawn(flow::keep(store.clone(), Arc::clone(&api.0.flows), stop.clone()));
        tokio::spawn(upkeep::run(store, clock, stop));
        api
    }

    pub(crate) fn idle(store: Store, auth: Auth, config: Config) -> Self {
        let registry = Arc::new(if config.serves_metrics { Registry::with_metrics() } else { Registry::new() });
        let flows = Arc::new(Flows::new(&store.snapshot()));
        crd::restore(&store.snapshot(), &registry);
        let auth = Arc::new(auth.with_clock(config.clock.clone()));
        let webhooks = Arc::new(Webhooks::new(store.clone()));
        let admission = Admission::new(
            store.clone(),
            Arc::clone(&auth),
            Arc::clone(&registry),
            Arc::clone(&webhooks),
            config.plugins.clone(),
        );
        let shutdown = CancellationToken::new();
        let extensions = Extensions::new(store.clone(), config.front_proxy.clone(), shutdown.clone());
        Self(Arc::new(Inner {
            store,
            registry,
            auth,
            admission,
            webhooks,
            extensions: Arc::new(extensions),
            remotes: Arc::default(),
            system: System::default(),
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            flows,
            proxy: Proxy::default(),
            config,
            shutdown,
            allocation: Arc::default(),
            quota_turns: std::array::from_fn(|_| Mutex::default()),
        }))
    }

    /// Answers one request. Every failure is an answer, a panic too.
    pub fn handle(&self, request: Request<Body>, peer: &Peer) -> BoxFuture<'static, Response<Body>> {
        let (api, peer) = (self.clone(), peer.clone());
        // On the heap at once: it is large, and every step that takes it by value would have it on the stack once more.
        let answering = Box::pin(handler::handle(api, request, peer));
        let answered = AssertUnwindSafe(answering).catch_unwind();
        Box::pin(answered.map(|answered| answered.unwrap_or_else(|_| handler::panicked())))
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Makes the objects, and the kinds that are served, like `past`; watchers see the changes.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn restore(&self, past: &Snapshot) -> Result<Revision, CommitError> {
        let before = self.store().snapshot();
        let revision = self.store().restore(past).await?;
        crd::replace(&before, past, self.registry(), revision);
        Ok(revision)
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// Who may do what.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// The admission plugins.
    pub fn admission(&self) -> &Admission {
        &self.0.admission
    }

    /// The client of webhooks.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        &self.0.webhooks
    }

    /// Who answers for groups that this server does not answer for.
    pub(crate) fn remotes(&self) -> &Remotes {
        &self.0.remotes
    }

    /// The client of those who do.
    pub(crate) fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    /// Shows another identity to servers that answer for groups of their own.
    pub fn show_to_extensions(&self, identity: FrontProxy) {
        self.0.extensions.show(identity);
    }

    /// Health, version and metrics.
    pub fn system(&self) -> &System {
        &self.0.system
    }

    pub(crate) fn flows(&self) -> &Flows {
        &self.0.flows
    }

    pub(crate) fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    pub(crate) fn openapi(&self) -> &OpenApi {
        &self.0.openapi
    }

    /// What the server was told.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Where the time comes from.
    pub fn clock(&self) -> &Clock {
        &self.0.config.clock
    }

    /// Ends every watch when cancelled.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    pub(crate) fn node_proxy(&self) -> Option<&Arc<dyn NodeProxy>> {
        self.0.config.node_proxy.as_ref()
    }

    /// What requests share that are passed on to Pods.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.0.proxy
    }

    /// Keeps others from charging the quotas of `namespace`.
    pub(crate) async fn quota_turn(&self, namespace: &str) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        namespace.hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % QUOTA_TURNS as u64).expect("less than the number of turns");
        self.0.quota_turns[turn].lock().await
    }

    /// Keeps others from choosing an address or port.
    pub(crate) async fn allocation(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.0.allocation).lock_owned().await
    }
}
