//! The manager: what the controllers of one process share, and their common life.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::activity::Activity;
use crate::admin;
use crate::controller::Controller;
use crate::endpoint::Endpoints;
use crate::events::Recorder;
use crate::health::Health;
use crate::informer::{Informers, Surroundings};
use crate::journal::{Replica, Runs, Served};
use crate::leader::{self, LeaderConfig};
use crate::loops::Loops;
use crate::metrics::Metrics;
use crate::port;
use crate::reconcile::{Handle, Process};
use crate::shards::{Division, Keeper, ShardConfig};
use crate::tap::Tap;
use crate::trace::{Exporting, TraceSettings, Tracer};
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
    /// Where to listen for events from outside: see [`Controller::endpoint`]; `None` is nowhere.
    pub events: Option<SocketAddr>,
    /// How to find the one that works among many; `None` if there is only one, or if they share the work.
    pub leader: Option<LeaderConfig>,
    /// How to share the work with other replicas; `None` if one does all.
    pub shards: Option<ShardConfig>,
    /// Whether to look out for writes that undo each other.
    pub notice_loops: bool,
    /// Whether to keep the journal of decisions, and tell it at the port of probes.
    pub journal: bool,
    /// Where traces go; `None` is nowhere.
    pub traces: Option<TraceSettings>,
    /// What it is for.
    pub purpose: Purpose,
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
            events: None,
            leader: None,
            shards: None,
            notice_loops: true,
            journal: true,
            traces: None,
            purpose: Purpose::Work,
            clock: Clock::system(),
            grace: Duration::from_secs(30),
        }
    }
}

/// What a manager is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To do what is to be done.
    Work,
    /// To find out what would be done: writes are caught by the tap's interceptor, and code that may change what is outside
    /// of the cluster is not run.
    Rehearsal,
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
    /// Shards were asked for, and something that has no keys to divide.
    #[error(
        "a task cannot be shared out between replicas: use a leader instead of shards, or a controller instead of the task"
    )]
    IndivisibleTask,
}

type Run = Box<dyn FnOnce(CancellationToken, Option<Arc<Division>>) -> BoxFuture<'static, ()> + Send>;

/// Holds the tap, caches and controllers of one process.
pub struct Manager {
    config: ManagerConfig,
    tap: Tap,
    metrics: Metrics,
    health: Health,
    handle: Handle,
    controllers: Vec<Run>,
    has_tasks: bool,
    activity: Activity,
    exporting: Option<Exporting>,
}

impl Manager {
    /// A manager that talks to the API through `client`. Must be called inside a tokio runtime.
    pub fn new(client: Client, config: ManagerConfig) -> Self {
        let metrics = Metrics::new();
        let health = Health::default();
        let tap = Tap::new(config.clock.clone(), metrics.clone());
        let (tracer, exporting) = start_traces(&config, &metrics).unzip();
        let common = Common {
            metrics: metrics.clone(),
            health: health.clone(),
            endpoints: Endpoints::default(),
            runs: config.journal.then(Runs::default),
            tracer,
            served: Arc::default(),
        };
        let handle = handle(client, &tap, None, &config, common);
        let (controllers, activity) = (Vec::new(), Activity::default());
        Self { config, tap, metrics, health, handle, controllers, has_tasks: false, activity, exporting }
    }

    /// Another cluster, called `name` in metrics and readiness, for controllers that work there: see
    /// [`Controller::in_cluster`]. It has caches and events of its own; leader and shards are those of the manager.
    pub fn cluster(&self, name: impl Into<String>, client: Client) -> Handle {
        let common = Common {
            metrics: self.metrics.clone(),
            health: self.health.clone(),
            endpoints: self.handle.endpoints.clone(),
            runs: self.handle.runs.clone(),
            tracer: self.handle.tracer.clone(),
            served: self.handle.served.clone(),
        };
        let name: Arc<str> = name.into().into();
        // Informers hear of all writes of their tap, so that of another cluster needs its own.
        let tap = self.tap.sibling();
        handle(client, &tap, Some(name), &self.config, common)
    }

    /// What the controllers share.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The caches.
    pub fn informers(&self) -> &Informers {
        &self.handle.informers
    }

    /// The journal, if one is kept.
    pub fn runs(&self) -> Option<Runs> {
        self.handle.runs.clone()
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
        self.controllers.push(Box::new(|stop, division| controller.run(stop, division)));
    }

    /// Adds any other task that is to run only while this process leads.
    pub fn add_task<F>(&mut self, task: impl FnOnce(CancellationToken) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.has_tasks = true;
        self.controllers.push(Box::new(|stop, _| Box::pin(task(stop))));
    }

    /// Works until `stop`, then ends in order: runs in progress first, the lease last.
    ///
    /// # Errors
    /// When a port is taken, and when another process took over the lead.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), RunError> {
        let admin_stop = CancellationToken::new();
        let _admin_stop = admin_stop.clone().drop_guard();
        let plain = admin::Admin { metrics: self.metrics.clone(), health: self.health.clone(), journal: None };
        let full = admin::Admin { journal: self.told_journal(), ..plain.clone() };
        open_ports(self.config.clone(), (plain, full), self.handle.endpoints.clone(), &admin_stop).await?;
        let ending = self.health.check("shutdown", "has not begun");
        ending.well();
        let (stopping, exporting) = (stop.clone(), self.exporting.take());
        let _ending = AbortOnDropHandle::new(tokio::spawn(async move {
            stopping.cancelled().await;
            // Who comes to webhooks and endpoints should go to another replica from now on.
            ending.trouble("the process is ending");
            std::future::pending::<()>().await;
        }));
        let result = self.work(stop).await;
        if let Some(exporting) = exporting {
            exporting.end().await;
        }
        result
    }

    /// The journal, and who tells it.
    fn told_journal(&self) -> Option<(Runs, admin::Introduce)> {
        let (runs, handle, activity) = (self.handle.runs.clone()?, self.handle.clone(), self.activity.clone());
        let introduce = move || Replica {
            operator: handle.name.to_string(),
            works: activity.has_begun(),
            serves: handle.served.lock().expect("no code that can panic runs under this lock").clone(),
            trouble: handle.health.troubles(),
        };
        Some((runs, Arc::new(introduce)))
    }

    async fn work(self, stop: CancellationToken) -> Result<(), RunError> {
        match (self.config.shards.clone(), self.config.leader.clone()) {
            (Some(shards), _) => self.run_shards(shards, stop).await,
            (None, Some(leader)) => self.run_as_leader(leader, stop).await,
            (None, None) => {
                run_all(self.controllers, stop, self.config.grace, None).await;
                Ok(())
            }
        }
    }

    /// Works on the shards that this replica gets.
    async fn run_shards(self, config: ShardConfig, stop: CancellationToken) -> Result<(), RunError> {
        if self.has_tasks {
            return Err(RunError::IndivisibleTask);
        }
        let division = Division::new(self.config.clock.clone(), config.count);
        let keeper = Keeper::new(self.handle.clone(), config, division.clone(), self.metrics.clone());
        // The leases are kept until all work has ended.
        let worked = CancellationToken::new();
        let work = async {
            run_all(self.controllers, stop, self.config.grace, Some(division)).await;
            worked.cancel();
        };
        tokio::join!(work, keeper.run(worked.clone()));
        Ok(())
    }

    /// Works while no other replica does.
    async fn run_as_leader(self, leader: LeaderConfig, stop: CancellationToken) -> Result<(), RunError> {
        let mut lease = leader::Elector::new(self.handle.clone(), leader, self.metrics.clone());
        if !lease.acquire(&stop).await {
            return Ok(());
        }
        let work_stop = stop.child_token();
        let work = run_all(self.controllers, work_stop.clone(), self.config.grace, None);
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

/// Opens the ports. The journal is told at that of probes only: metrics are often shown around by a Service.
async fn open_ports(
    config: ManagerConfig,
    (plain, full): (admin::Admin, admin::Admin),
    endpoints: Endpoints,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    if let Some(address) = config.metrics.filter(|address| Some(*address) != config.probes) {
        port::serve(address, plain, stop.clone()).await?;
    }
    if let Some(address) = config.probes {
        port::serve(address, full, stop.clone()).await?;
    }
    if let Some(address) = config.events {
        port::serve(address, endpoints, stop.clone()).await?;
    }
    Ok(())
}

/// Begins to send traces, if that is asked for. An operator works without them, too.
fn start_traces(config: &ManagerConfig, metrics: &Metrics) -> Option<(Tracer, Exporting)> {
    let settings = config.traces.clone()?;
    match Tracer::start(settings, metrics.clone()) {
        Ok(started) => Some(started),
        Err(error) => {
            tracing::error!(%error, "Traces cannot be sent");
            None
        }
    }
}

/// What all clusters of a manager share.
struct Common {
    metrics: Metrics,
    health: Health,
    endpoints: Endpoints,
    runs: Option<Runs>,
    tracer: Option<Tracer>,
    served: Arc<Mutex<Vec<Served>>>,
}

fn handle(client: Client, tap: &Tap, cluster: Option<Arc<str>>, config: &ManagerConfig, common: Common) -> Handle {
    let Common { metrics, health, endpoints, runs, tracer, served } = common;
    let client = tap.client(client);
    let events = Recorder::new(client.clone(), config.clock.clone(), config.name.clone());
    let watch = || Loops::new(config.clock.clone(), metrics.clone(), events.clone());
    let loops = config.notice_loops.then(watch);
    let surroundings = Surroundings {
        clock: config.clock.clone(),
        health: health.clone(),
        metrics: metrics.clone(),
        field_manager: config.name.clone(),
        cluster: cluster.clone(),
        loops: loops.clone(),
    };
    let informers = Informers::new(client.clone(), tap, surroundings);
    let (clock, name, rehearsal) =
        (config.clock.clone(), config.name.as_str().into(), config.purpose == Purpose::Rehearsal);
    let tap = tap.clone();
    Handle {
        client,
        informers,
        events,
        clock,
        name,
        cluster,
        tap,
        metrics,
        health,
        endpoints,
        loops,
        runs,
        tracer,
        served,
        rehearsal,
    }
}

async fn run_all(controllers: Vec<Run>, stop: CancellationToken, grace: Duration, division: Option<Arc<Division>>) {
    let mut running = JoinSet::new();
    for controller in controllers {
        running.spawn(controller(stop.clone(), division.clone()));
    }
    stop.cancelled().await;
    let end = async { while running.join_next().await.is_some() {} };
    if tokio::time::timeout(grace, end).await.is_err() {
        tracing::warn!("Work in progress did not end within {grace:?} and is dropped");
    }
}
