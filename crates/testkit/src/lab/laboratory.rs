//! A laboratory: a runtime of one thread whose time moves only when everything is idle, and a cluster in it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use tokio::sync::mpsc;
use tracing::Dispatch;
use windlass::Program;
use windlass::runtime::tap::Rights;
use windlass_apiserver::auth::User as Account;
use windlass_apiserver::server;
use windlass_clock::Clock;

use super::judge::{Clean, Judge, Rules, Settled};
use super::lives::Operating;
use super::log::Log;
use super::plan::Plan;
use super::roles::{self, Borders};
use super::session::{Budget, Called, Delivered, Session, Terms};
use super::user::User;
use super::world::Chronicle;
use crate::{Builder, Snapshot, TestClock, TestCluster};

/// The chance of what is there before a run is that of no run: an identity that came twice would be two objects to the
/// garbage collector.
const SETUP_SEED: u64 = u64::MAX;
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
pub(crate) type Make = Arc<dyn Fn() -> Box<dyn Program> + Send + Sync>;
/// What the user does.
pub(crate) type Scenario = Arc<dyn Fn(User) -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// What all runs of an exploration have in common.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) make: Make,
    pub(crate) scenario: Scenario,
    /// The cluster that it runs on.
    pub(crate) cluster: Builder,
    pub(crate) rules: Arc<Rules>,
}

/// How a run went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) calls: Vec<Called>,
    pub(crate) events: Vec<Delivered>,
    pub(crate) states: Vec<Settled>,
    /// What the operator made, and how often.
    pub(crate) made: BTreeMap<String, usize>,
    pub(crate) violations: Vec<String>,
    /// The rights that the operator took.
    pub(crate) rights: Rights,
}

pub(crate) struct Lab {
    // In the order in which they end.
    cluster: TestCluster,
    runtime: tokio::runtime::Runtime,
    base: Snapshot,
    /// The operator's own account, with the roles of its manifests.
    account: Account,
    borders: Arc<Borders>,
    log: Log,
    dispatch: Dispatch,
}

impl Lab {
    /// A laboratory with the kinds and the roles of the operator.
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime =
            builder.enable_all().start_paused(true).build().expect("the system gives a thread its own runtime");
        let program = (setup.make)();
        let (cluster, base, account) = runtime.block_on(async {
            let clock = TestClock::running_from(START);
            clock.clock().seed(SETUP_SEED);
            let cluster = setup.cluster.clone().clock(clock).start().await;
            cluster.define(program.crds()).await;
            let granted = roles::grant(&cluster, &*program).await;
            // A part of the cluster may do everything.
            let account = if setup.rules.is_cluster { Account::master(program.name()) } else { granted };
            tokio::time::sleep(REST).await;
            let base = cluster.snapshot();
            (cluster, base, account)
        });
        let borders = Arc::new(Borders::of(&cluster, &*program, &setup.rules));
        let log = Log::default();
        let dispatch = log.dispatch();
        Self { cluster, runtime, base, account, borders, log, dispatch }
    }

    /// One run; afterwards the cluster is as before.
    pub(crate) fn run(&self, setup: &Setup, plan: &Plan, clean: Option<&Arc<Clean>>, budget: Budget) -> Outcome {
        self.log.clear();
        let run = || self.runtime.block_on(self.run_in_time(setup, plan, clean, budget));
        tracing::dispatcher::with_default(&self.dispatch, run)
    }

    async fn run_in_time(&self, setup: &Setup, plan: &Plan, clean: Option<&Arc<Clean>>, budget: Budget) -> Outcome {
        self.cluster.clock().clock().seed(plan.seed);
        let (orders, received) = mpsc::channel(ORDERS_MAX);
        let store = self.cluster.cluster().api().store().clone();
        let chronicle = Chronicle::begin(&store);
        let clock = Clock::running(self.cluster.clock().now());
        clock.seed(plan.seed);
        let terms = Terms { plan: plan.clone(), budget, borders: self.borders.clone(), log: self.log.clone() };
        let session = Arc::new(Session::new(terms, store, clock, orders));
        let operator = Operating {
            make: setup.make.clone(),
            session: session.clone(),
            is_cluster: setup.rules.is_cluster,
            api: self.local(self.account.clone()),
            master: self.local(Account::master("windlass-admin")),
        };
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
            made: std::mem::take(&mut state.made),
            violations: std::mem::take(&mut state.violations),
            rights: std::mem::take(&mut state.rights),
        }
    }

    fn local(&self, account: Account) -> server::Local {
        server::local(self.cluster.cluster().api(), account)
    }

    /// Undoes what the run did.
    async fn rest(&self, session: &Session) {
        session.end_all();
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
        user.judge().wishes = state.wishes.clone();
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
