//! The life of a member: observe, decide, act, until it is told to end.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{Notify, watch};
use windlass::k8s_openapi::api::core::v1::ConfigMap;
use windlass::kube::runtime::{WatchStreamExt, watcher};
use windlass::kube::{Api, Client};
use windlass::runtime::tenure::Tenure;
use windlass::runtime::{Clock, LeaderConfig};

use super::act::Outcome;
use super::decide::{Action, decide};
use super::fence::{self, Guard};
use super::keeper::Keeper;
use super::observed::{Observed, Server};
use super::peers::Peers;
use super::postgres::Postgres;
use super::sql::Passwords;
use super::status::{self, Board};
use super::volume::{ControlFile, Volume};
use super::{AnyError, Identity, publish};
use crate::names;
use crate::wire::{Plan, Quorum};

/// Between two looks when all is well, and when something is on its way.
const STEADY: Duration = Duration::from_secs(1);
const BUSY: Duration = Duration::from_millis(200);
/// The pause after a failure doubles up to this.
const REST_MAX: Duration = Duration::from_secs(30);

/// A member, with what it knows between two looks.
pub(crate) struct Member {
    pub(super) identity: Identity,
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) postgres: Postgres,
    pub(super) keeper: Keeper,
    pub(super) guard: Guard,
    pub(super) peers: Peers,
    pub(super) plan: Plan,
    pub(super) memo: Memo,
    board: watch::Sender<Board>,
}

/// What is remembered between two looks.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself, not a state of one thing")]
pub(super) struct Memo {
    /// What the control file said when the server did not run.
    pub(super) control: ControlFile,
    /// Whom the server is told to follow.
    pub(super) follows: Option<String>,
    /// The rule of acknowledgement that the server is told.
    pub(super) rule: Option<Quorum>,
    /// While it is not known to be in force: how far the log was when it was told.
    pub(super) unconfirmed: Option<u64>,
    /// Whether the settings are those of a standby.
    pub(super) is_standby: bool,
    /// Whether there should be a server.
    pub(super) is_running: bool,
    /// The server as it was last seen.
    pub(super) server: Option<Server>,
    /// When the server was started.
    pub(super) started: Duration,
    /// When it last answered, since it was started.
    pub(super) answered: Option<Duration>,
    /// When a standby last received, and when it was last told whom to follow.
    pub(super) streamed: Duration,
    pub(super) turned: Duration,
    /// Of a primary: those that follow, and when that was last so.
    pub(super) standbys: BTreeMap<String, Duration>,
    /// How far they are behind, and how far they have the log.
    pub(super) lags: BTreeMap<String, u64>,
    pub(super) flushed: BTreeMap<String, u64>,
    /// The file of the log that was archived last, and the one that cannot be.
    pub(super) archiver: Option<(Option<String>, Option<String>)>,
    /// Whether the control file knows the timeline.
    pub(super) rewindable: bool,
    /// What was done for the server since it was started.
    pub(super) provisioned: Option<Passwords>,
    pub(super) slots: Option<BTreeSet<String>>,
    /// How often in a row something failed, why, and until when nothing is tried.
    pub(super) failures: u32,
    pub(super) failure: String,
    /// How often in a row the server could not be started, or ended.
    pub(super) failed_starts: u32,
    pub(super) rest_until: Duration,
    pub(super) is_stopping: bool,
}

/// Lives until `stop`.
pub(crate) async fn run(
    identity: Identity,
    client: Client,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), AnyError> {
    let clock = Clock::system();
    let volume = Volume::at(&identity.volume);
    fence::end_all(&volume.data());
    volume.settle()?;
    let guard = Guard::watch(volume.data(), clock.clone());
    let (board, shown) = watch::channel(Board::default());
    tokio::spawn(status::serve(shown.clone()));
    let mut plans = plans(&identity, &client);
    let stopping = stop_flag(stop);
    let plan = tokio::select! {
        plan = next_plan(&mut plans) => plan,
        () = stopping.notified() => return Ok(()),
    };
    tokio::spawn(publish::run(identity.clone(), client.clone(), shown));
    let keeper = Keeper::start(tenure(&identity, &client, &plan, &clock), clock.clone(), guard.clone(), beat(&plan));
    let known = plans.clone();
    let members = move || known.borrow().as_ref().map(|plan| plan.members.clone()).unwrap_or_default();
    let peers = Peers::ask(identity.clone(), clock.clone(), members);
    let postgres = Postgres::new(volume);
    let memo = Memo::default();
    let mut member = Member { identity, client, clock, postgres, keeper, guard, peers, plan, memo, board };
    member.live(plans, &stopping).await;
    Ok(())
}

impl Member {
    async fn live(&mut self, mut plans: watch::Receiver<Option<Plan>>, stopping: &Notify) {
        loop {
            if let Some(plan) = plans.borrow_and_update().clone() {
                if plan.origin != self.plan.origin {
                    self.memo.failures = 0; // What is to be restored was put right.
                }
                if plan.parameters != self.plan.parameters {
                    self.begin_anew();
                }
                self.plan = plan;
            }
            let seen = self.observe().await;
            let action = decide(&seen);
            self.show(&seen, &action);
            if action == Action::Exit {
                return;
            }
            let is_idle = matches!(action, Action::Lead | Action::Replicate | Action::Wait(_));
            if !is_idle {
                tracing::info!(?action, server = state_word(&seen.server), holder = ?seen.holder, "Acting");
            }
            match self.act(action.clone(), &seen).await {
                Ok(Outcome::Done) => {}
                Ok(Outcome::Settled) => (self.memo.failures, self.memo.failed_starts) = (0, 0),
                Err(error) => self.fail(&error.to_string()),
            }
            let pause = match action {
                Action::Lead | Action::Replicate => STEADY,
                _ => BUSY,
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.keeper.changed() => {}
                _ = plans.changed() => {}
                () = stopping.notified() => self.memo.is_stopping = true,
            }
        }
    }

    /// The server is to run with other settings: how it went so far says nothing of them, and nothing is waited for.
    fn begin_anew(&mut self) {
        if self.memo.failed_starts > 0 {
            (self.memo.failures, self.memo.failed_starts) = (0, 0);
            self.memo.rest_until = Duration::ZERO;
        }
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.memo.failures = self.memo.failures.saturating_add(1);
        self.memo.failure = why.to_owned();
        // The second attempt follows at once: most that fails is over by then.
        let pause = Duration::from_secs((1 << self.memo.failures.min(6)) - 2).min(REST_MAX);
        self.memo.rest_until = self.clock.elapsed() + pause;
        tracing::warn!(error = why, attempt = self.memo.failures, "Failed; tried again in {pause:?}");
    }

    /// Tells the others, the node and the cluster how it is.
    fn show(&self, seen: &Observed, action: &Action) {
        let board = self.describe(seen, action);
        self.board.send_if_modified(|shown| {
            let is_new = shown.report != board.report || shown.is_ready != board.is_ready;
            *shown = board;
            is_new
        });
    }
}

fn state_word(server: &Server) -> &'static str {
    match server {
        Server::Stopped => "stopped",
        Server::Starting => "starting",
        Server::Silent => "silent",
        Server::Primary(_) => "primary",
        Server::Standby(_) => "standby",
    }
}

/// A flag that stays up: `notify_one` is not lost when nobody waits.
fn stop_flag(stop: impl Future<Output = ()> + Send + 'static) -> Arc<Notify> {
    let flag = Arc::new(Notify::new());
    let raised = flag.clone();
    tokio::spawn(async move {
        stop.await;
        raised.notify_one();
    });
    flag
}

fn plans(identity: &Identity, client: &Client) -> watch::Receiver<Option<Plan>> {
    let (sender, receiver) = watch::channel(None);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &identity.namespace);
    let mut states = Box::pin(watcher::watch_object(maps, &names::plan(&identity.cluster)).default_backoff());
    tokio::spawn(async move {
        while let Some(state) = states.next().await {
            match state.map(|map| map.and_then(|map| read_plan(&map))) {
                Ok(Some(plan)) => drop(sender.send(Some(plan))),
                Ok(None) => tracing::warn!("There is no plan for this cluster"),
                Err(error) => tracing::warn!(%error, "The plan cannot be watched"),
            }
        }
    });
    receiver
}

fn read_plan(map: &ConfigMap) -> Option<Plan> {
    serde_json::from_str(map.data.as_ref()?.get(names::PLAN_KEY)?).ok()
}

async fn next_plan(plans: &mut watch::Receiver<Option<Plan>>) -> Plan {
    match plans.wait_for(Option::is_some).await.ok().and_then(|plan| plan.clone()) {
        Some(plan) => plan,
        None => std::future::pending().await,
    }
}

/// A sixth of the lease lies between renewals; after two thirds of it without one the server ends.
fn beat(plan: &Plan) -> Duration {
    Duration::from_secs(plan.lease_seconds.into()) / 6
}

fn tenure(identity: &Identity, client: &Client, plan: &Plan, clock: &Clock) -> Tenure {
    let config = LeaderConfig {
        identity: identity.member.clone(),
        lease: beat(plan) * 6,
        renew: beat(plan) * 4,
        retry: beat(plan),
        ..LeaderConfig::new(identity.namespace.clone(), names::lease(&identity.cluster))
    };
    Tenure::new(client.clone(), config, clock.clone())
}
