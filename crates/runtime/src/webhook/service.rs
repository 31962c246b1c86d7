//! Webhooks at work: a server, its keys, and an API server that trusts them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_clock::Clock;

use super::figures::WebhookFamilies;
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
    /// The name of the Service by which the API server comes; `None` if it comes by the address itself. Then all that
    /// points to the webhooks is put into the API, and what would fail requests is removed at the end.
    pub service: Option<String>,
    /// The namespace of the Service and of the Secret with the keys.
    pub namespace: String,
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
        let reach = match self.service {
            Some(name) => Reach::Service { namespace: self.namespace.clone(), name },
            None => Reach::Url(format!("https://{}", reachable(address))),
        };
        let (shown, routes) = (Arc::new(Shown::default()), Arc::new(Routes::new(&self.registration)));
        figures.expect(routes.paths());
        let served = server::Served { routes, figures: figures.clone() };
        let mut names: BTreeSet<String> = reach.names().into_iter().collect();
        names.extend(["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()]);
        let secret = Self::secret_name(&self.registration.name);
        let (told, ready) = watch::channel(false);
        let work = Work {
            keeper: Keeper::new(client.clone(), self.namespace, secret, names),
            trust: Trust { client: client.clone(), registration: self.registration, reach },
            shown: shown.clone(),
            clock,
            told,
            figures,
        };
        let task = tokio::spawn(async move {
            let (ended, migrating) = (CancellationToken::new(), stop.child_token());
            let serving = server::serve(listener, shown, served, ended.clone());
            let looking = async {
                work.look_after(&check, stop).await;
                work.trust.withdraw().await;
                ended.cancel();
            };
            let registration = &work.trust.registration;
            let migration = Migration {
                client,
                name: registration.name.clone(),
                chains: registration.chains.clone(),
                clock: work.clock.clone(),
                serves_all: registration.namespaces.is_empty(),
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
    keeper: Keeper,
    trust: Trust,
    shown: Arc<Shown>,
    clock: Clock,
    told: watch::Sender<bool>,
    figures: WebhookFamilies,
}

#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Keys(#[from] KeeperError),
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
        let is_told = *self.told.borrow();
        let keys = self.keeper.keys(self.clock.now(), is_told).await;
        self.figures.read_certificate(keys.is_ok());
        let keys = keys?;
        self.shown.show(keys.serving())?;
        Ok(self.trust.establish(&keys.bundle(), !is_told).await?)
    }
}

/// An address that callers on this machine can use.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}
