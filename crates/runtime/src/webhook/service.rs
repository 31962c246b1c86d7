//! Webhooks at work: a server, its keys, and an API server that trusts them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

use super::figures::WebhookFamilies;
use super::given::{Given, GivenError};
use super::keeper::{Keeper, KeeperError};
use super::migration::Migration;
use super::registration::{Reach, Registration};
use super::routes::Routes;
use super::server::{self, ShowError, Shown};
use super::trust::{Trust, TrustError};
use crate::health::Check;
use crate::reconcile::Handle;

/// How often the keys and what the API server trusts are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How soon after something failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Webhooks that are to be served.
pub struct Webhooks {
    /// Which.
    pub registration: Registration,
    /// Where to listen.
    pub address: SocketAddr,
    /// How the API server comes to them, and by whose certificates.
    pub way: Way,
}

/// How the API server comes to webhooks, and by whose certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a Service, with certificates that are made and renewed here.
    Service {
        /// The namespace of the Service and of the Secret with the keys.
        namespace: String,
        /// The name of the Service.
        name: String,
    },
    /// By the address itself, with certificates that are made and renewed here. All that points to the webhooks is put into the
    /// API, and what would fail requests is removed at the end.
    Address {
        /// The namespace of the Secret with the keys.
        namespace: String,
    },
    /// As somebody else arranges it, who also keeps `tls.crt` and `tls.key` in this folder.
    Given(PathBuf),
}

/// Webhooks that are being served.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    ready: watch::Receiver<bool>,
    task: JoinHandle<()>,
}

/// Why webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port is not to be had.
    #[error("cannot listen on {address} for webhooks: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
}

impl Webhooks {
    /// The name of the Secret with the keys, of the operator called `operator`.
    pub fn secret_name(operator: &str) -> String {
        format!("{operator}-webhook-keys")
    }

    /// Listens, and serves until `stop`. What goes wrong with keys and trust shows in `check`.
    ///
    /// # Errors
    /// When the address is taken.
    pub async fn start(self, handle: &Handle, check: Check, stop: CancellationToken) -> Result<Serving, ServeError> {
        let (client, clock, figures) = (handle.client.clone(), handle.clock.clone(), handle.metrics.webhooks().clone());
        let listen = |source| ServeError::Listen { address: self.address, source };
        let listener = TcpListener::bind(self.address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (shown, routes) = (Arc::new(Shown::default()), Arc::new(Routes::new(&self.registration)));
        figures.expect(routes.paths());
        let served = server::Served { routes, figures: figures.clone() };
        let (told, ready) = watch::channel(false);
        let source = Source::new(self.way, address, &self.registration, &client);
        let work = Work { source, shown: shown.clone(), clock, told, figures };
        let registration = self.registration;
        let task = tokio::spawn(async move {
            let (ended, migrating) = (CancellationToken::new(), stop.child_token());
            let serving = server::serve(listener, shown, served, ended.clone());
            let looking = async {
                work.look_after(&check, stop).await;
                work.source.withdraw().await;
                ended.cancel();
            };
            let migration = Migration {
                client,
                serves_all: registration.namespaces.is_empty(),
                name: registration.name,
                chains: registration.chains,
                clock: work.clock.clone(),
            };
            let migrating = migration.run(work.told.subscribe(), migrating);
            tokio::join!(serving, looking, migrating);
        });
        Ok(Serving { address, ready, task })
    }
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the API server was told of it.
    pub async fn ready(&mut self) {
        // An error means that the work has ended: then nothing is going to be ready.
        let _ = self.ready.wait_for(|ready| *ready).await;
    }

    /// Waits for its end.
    pub async fn ended(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "Serving webhooks ended badly");
        }
    }
}

/// What is looked after while webhooks are served.
struct Work {
    source: Source,
    shown: Arc<Shown>,
    clock: Clock,
    told: watch::Sender<bool>,
    figures: WebhookFamilies,
}

/// Where certificates come from.
enum Source {
    Own(Box<Own>),
    Given(Given),
}

/// Keys that are made here, and those who are to trust them.
struct Own {
    keeper: Keeper,
    trust: Trust,
}

impl Source {
    fn new(way: Way, address: SocketAddr, registration: &Registration, client: &Client) -> Self {
        let (reach, namespace) = match way {
            Way::Given(folder) => return Self::Given(Given { folder }),
            Way::Service { namespace, name } => (Reach::Service { namespace: namespace.clone(), name }, namespace),
            Way::Address { namespace } => (Reach::Url(format!("https://{}", reachable(address))), namespace),
        };
        let mut names: BTreeSet<String> = reach.names().into_iter().collect();
        names.extend(["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()]);
        let secret = Webhooks::secret_name(&registration.name);
        Self::Own(Box::new(Own {
            keeper: Keeper::new(client.clone(), namespace, secret, names),
            trust: Trust { client: client.clone(), registration: registration.clone(), reach },
        }))
    }

    async fn withdraw(&self) {
        if let Self::Own(own) = self {
            own.trust.withdraw().await;
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Keys(#[from] KeeperError),
    #[error(transparent)]
    Given(#[from] GivenError),
    #[error(transparent)]
    Show(#[from] ShowError),
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Work {
    async fn look_after(&self, check: &Check, stop: CancellationToken) {
        loop {
            let pause = match self.look().await {
                Ok(()) => {
                    check.well();
                    self.told.send_replace(true);
                    LOOK_INTERVAL
                }
                Err(error) => {
                    tracing::error!(%error, "Webhooks are not served as they should be");
                    check.trouble(error.to_string());
                    RETRY_INTERVAL
                }
            };
            tokio::select! {
                () = self.clock.sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// The keys, then what servers show, then whom callers trust: a new authority is trusted before it is used.
    async fn look(&self) -> Result<(), LookError> {
        let own = match &self.source {
            Source::Own(own) => own,
            Source::Given(given) => {
                let pair = given.read().await;
                self.figures.read_certificate(pair.is_ok());
                return Ok(self.shown.show(&pair?)?);
            }
        };
        let is_told = *self.told.borrow();
        let keys = own.keeper.keys(self.clock.now(), is_told).await;
        self.figures.read_certificate(keys.is_ok());
        let keys = keys?;
        self.shown.show(keys.serving())?;
        Ok(own.trust.establish(&keys.bundle(), !is_told).await?)
    }
}

/// An address that callers on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}
