//! The manager: what the controllers of one process share, and their common life.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::admin;
use crate::controller::Controller;
use crate::events::Recorder;
use crate::health::Health;
use crate::informer::Informers;
use crate::leader::{self, LeaderConfig};
use crate::metrics::Metrics;
use crate::reconcile::{Handle, Process};
use crate::tap::Tap;
use windlass_clock::Clock;

/// How a manager behaves.
#[derive(Clone, Debug)]
pub struct ManagerConfig {
    /// The operator's name: field manager, event source, lease.
    pub name: String,
    /// Where to serve metrics; `None` is nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where to answer probes; `None` is nowhere.
    pub probes: Option<SocketAddr>,
    /// How to find the one that works among many; `None` if there is only one.
    pub leader: Option<LeaderConfig>,
    /// Where the time comes from.
    pub clock: Clock,
    /// How long runs in progress may take to end after a stop.
    pub grace: Duration,
}

impl ManagerConfig {
    /// No ports, no leader election, the machine's clock, half a minute to end.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            metrics: None,
            probes: None,
            leader: None,
            clock: Clock::system(),
            grace: Duration::from_secs(30),
        }
    }
}

/// Why a manager ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A port is not to be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// Another process leads now; this one must not go on.
    #[error("lost the lease {0}: another replica may be at work")]
    LeaseLost(String),
}

type Run = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Holds the tap, caches and controllers of one process.
pub struct Manager {
    config: ManagerConfig,
    tap: Tap,
    metrics: Metrics,
    health: Health,
    handle: Handle,
    controllers: Vec<Run>,
    activity: Activity,
}

impl Manager {
    /// A manager that talks to the API through `client`. Must be called inside a tokio runtime.
    pub fn new(client: Client, config: ManagerConfig) -> Self {
        let metrics = Metrics::new();
        let health = Health::default();
        let tap = Tap::new(config.clock.clone(), metrics.clone());
        let client = tap.client(client);
        let informers = Informers::new(client.clone(), &tap, config.clock.clone(), health.clone(), config.name.clone());
        let events = Recorder::new(client.clone(), config.clock.clone(), config.name.clone());
        let name: Arc<str> = config.name.as_str().into();
        let handle = Handle { client, informers, events, clock: config.clock.clone(), name };
        Self { config, tap, metrics, health, handle, controllers: Vec::new(), activity: Activity::default() }
    }

    /// What the controllers share.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The caches.
    pub fn informers(&self) -> &Informers {
        &self.handle.informers
    }

    /// The tap that all calls pass.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What is well and what is not.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Whether the controllers have something to do.
    pub fn activity(&self) -> Activity {
        self.activity.clone()
    }

    /// Adds a controller; it works once the manager runs and leads.
    pub fn add<P: Process>(&mut self, controller: Controller<P>) {
        controller.show(&self.activity);
        self.controllers.push(Box::new(|stop| Box::pin(controller.run(stop))));
    }

    /// Adds any other task that is to run only while this process leads.
    pub fn add_task<F>(&mut self, task: impl FnOnce(CancellationToken) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.controllers.push(Box::new(|stop| Box::pin(task(stop))));
    }

    /// Works until `stop`, then ends in order: runs in progress first, the lease last.
    ///
    /// # Errors
    /// When a port is taken, and when another process took over the lead.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let admin_stop = CancellationToken::new();
        let _admin_stop = admin_stop.clone().drop_guard();
        let admin = admin::Admin { metrics: self.metrics.clone(), health: self.health.clone() };
        if let Some(address) = self.config.metrics {
            admin.clone().serve(address, admin_stop.clone()).await?;
        }
        if let Some(address) = self.config.probes.filter(|address| Some(*address) != self.config.metrics) {
            admin.serve(address, admin_stop.clone()).await?;
        }
        let Some(leader) = self.config.leader.clone() else {
            run_all(self.controllers, stop, self.config.grace).await;
            return Ok(());
        };
        let mut lease = leader::Elector::new(self.handle.clone(), leader, self.metrics.clone());
        if !lease.acquire(&stop).await {
            return Ok(());
        }
        let work_stop = stop.child_token();
        let work = run_all(self.controllers, work_stop.clone(), self.config.grace);
        let keep = async {
            let lost = lease.keep(&work_stop).await;
            if lost {
                self.tap.fence();
            }
            lost
        };
        let (lost, ()) = tokio::join!(keep, work);
        if lost {
            return Err(RunError::LeaseLost(lease.name().to_owned()));
        }
        lease.release().await;
        Ok(())
    }
}

async fn run_all(controllers: Vec<Run>, stop: CancellationToken, grace: Duration) {
    let mut running = JoinSet::new();
    for controller in controllers {
        running.spawn(controller(stop.clone()));
    }
    stop.cancelled().await;
    let end = async { while running.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, end).await.is_err() {
        tracing::warn!("Work in progress did not end within {grace:?} and is dropped");
    }
}
