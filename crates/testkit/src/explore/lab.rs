//! A laboratory: a runtime of one thread whose time moves only when everything is idle, and a cluster in it.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::Program;
use windlass::runtime::{Manager, ManagerConfig, Namespaces};
use windlass_apiserver::auth::User as Account;
use windlass_apiserver::server;
use windlass_clock::Clock;

use super::gate::Gate;
use super::judge::{Clean, Judge, Rules, Settled};
use super::plan::Plan;
use super::session::{Budget, Called, DOWN, Delivered, Order, Session};
use super::user::User;
use super::world::Chronicle;
use crate::{Profile, Snapshot, TestClock, TestCluster};

/// How long the cluster has to come to rest after its start.
const REST: Duration = Duration::from_secs(30);
/// How long it has after a run.
const PAUSE: Duration = Duration::from_secs(1);
/// How long nothing may happen at the end of a run.
const STAYS: Duration = Duration::from_secs(60);
/// When all runs begin, as far as anybody in them knows.
const START: &str = "2030-01-01T00:00:00Z";
/// How many orders wait for whoever runs the operator.
const ORDERS_MAX: usize = 64;

/// Makes the operator, anew for each of its lives.
pub(super) type Make = Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>;
/// What the user does.
pub(super) type Scenario = Arc<dyn Fn(User) -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// What all runs of an exploration have in common.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) make: Make,
    pub(super) scenario: Scenario,
    pub(super) profile: Profile,
    pub(super) rules: Arc<Rules>,
}

/// How a run went.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) calls: Vec<Called>,
    pub(super) events: Vec<Delivered>,
    pub(super) states: Vec<Settled>,
    pub(super) violations: Vec<String>,
}

pub(super) struct Lab {
    // In the order in which they end.
    cluster: TestCluster,
    runtime: tokio::runtime::Runtime,
    base: Snapshot,
}

impl Lab {
    /// A laboratory with the kinds of the operator.
    pub(super) fn new(setup: &Setup) -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime =
            builder.enable_all().start_paused(true).build().expect("the system gives a thread its own runtime");
        let definitions = (setup.make)().crds();
        let (cluster, base) = runtime.block_on(async {
            let clock = TestClock::running_from(START);
            clock.clock().seed(0);
            let cluster = TestCluster::builder().profile(setup.profile).clock(clock).start().await;
            cluster.define(definitions).await;
            tokio::time::sleep(REST).await;
            let base = cluster.snapshot();
            (cluster, base)
        });
        Self { cluster, runtime, base }
    }

    /// One run; afterwards the cluster is as before.
    pub(super) fn run(&self, setup: &Setup, plan: &Plan, clean: Option<&Arc<Clean>>, budget: Budget) -> Outcome {
        self.runtime.block_on(async {
            self.cluster.clock().clock().seed(plan.seed);
            let (orders, received) = mpsc::channel(ORDERS_MAX);
            let store = self.cluster.cluster().api().store().clone();
            let chronicle = Chronicle::begin(&store);
            let clock = Clock::running(self.cluster.clock().now());
            clock.seed(plan.seed);
            let session = Arc::new(Session::new(plan.clone(), store, clock, budget, orders));
            let operator = Operating { make: setup.make.clone(), session: session.clone(), api: self.local() };
            let operator = tokio::spawn(operator.run(received));
            let judge = Judge::new(chronicle, setup.rules.clone(), clean.cloned());
            let user = User::new(self.cluster.client(), session.clone(), Arc::new(Mutex::new(judge)));
            play(setup, plan, clean, &user, &session).await;
            operator.abort();
            let _ = operator.await;
            self.rest(&session).await;
            let states = std::mem::take(&mut user.judge().states);
            let mut state = session.lock();
            Outcome {
                calls: std::mem::take(&mut state.calls),
                events: std::mem::take(&mut state.events),
                states,
                violations: std::mem::take(&mut state.violations),
            }
        })
    }

    fn local(&self) -> server::Local {
        server::local(self.cluster.cluster().api(), Account::master("windlass-admin"))
    }

    /// Undoes what the run did.
    async fn rest(&self, session: &Session) {
        session.lock().life += 1;
        for _ in 0..2 {
            // Controllers may still act on what was there: then that is undone, too.
            self.cluster.reset(&self.base).await;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The scenario, or what the user wants at one of its steps without a history.
async fn play(setup: &Setup, plan: &Plan, clean: Option<&Arc<Clean>>, user: &User, session: &Session) {
    if let Some(step) = plan.fresh() {
        let Some(state) = clean.and_then(|clean| clean.at(step)) else { return };
        for (_, object) in state.wishes.iter() {
            if let Err(error) = crate::manifests::apply(user.client(), object.clone()).await {
                session.violate(format!("what the user wants at step {step} is refused: {error}"));
            }
        }
        user.end(Duration::ZERO).await;
        user.judge().compare_fresh(step, session);
        return;
    }
    let played = AssertUnwindSafe((setup.scenario)(user.clone())).catch_unwind().await;
    if let Err(panic) = played {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        session.violate(format!("the scenario failed: {text}"));
    }
    user.end(STAYS).await;
}

/// Runs the operator, one life after the other.
struct Operating {
    make: Make,
    session: Arc<Session>,
    api: server::Local,
}

impl Operating {
    async fn run(self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let life = self.session.lock().life;
            let mut living = Living(self.live(life));
            let order = tokio::select! {
                biased;
                order = orders.recv() => order,
                ended = &mut living.0 => {
                    self.session.violate(format!("the operator ended by itself: {ended:?}"));
                    orders.recv().await
                }
            };
            drop(living);
            match order {
                None => return,
                Some(Order::Crash) => tokio::time::sleep(DOWN).await,
                Some(Order::Down(start)) => drop(start.await),
            }
        }
    }

    fn live(&self, life: usize) -> JoinHandle<Result<(), windlass::runtime::RunError>> {
        let program = (self.make)();
        let gate = Gate { session: self.session.clone(), life, api: self.api.clone() };
        let client = Client::new(gate, "default");
        let config = ManagerConfig { clock: self.session.clock().clone(), ..ManagerConfig::new(program.name()) };
        let mut manager = Manager::new(client, config);
        program.install(&mut manager, Namespaces::all());
        tokio::spawn(manager.run(CancellationToken::new()))
    }
}

/// A life of the operator; it ends at once when this is dropped.
struct Living(JoinHandle<Result<(), windlass::runtime::RunError>>);

impl Drop for Living {
    fn drop(&mut self) {
        self.0.abort();
    }
}
