//! What is known of one run while it goes on: calls, events, lives of the operator, and what is to go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use windlass::runtime::tap::Call;
use windlass_clock::Clock;
use windlass_store::{Revision, Store};

use super::plan::Plan;

/// How long the operator is down after a crash.
pub(super) const DOWN: Duration = Duration::from_secs(1);
/// How long events are held back, and caches see the past. Less than [`super::user::QUIET`].
pub(super) const HELD: Duration = Duration::from_secs(5);
/// How long a call waits for the user to act.
const USER_WAIT: Duration = Duration::from_secs(30);

/// A call of the operator.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its number.
    pub number: usize,
    /// When, since the run began.
    pub at: Duration,
    /// How often everything had settled before.
    pub step: usize,
    /// In which life of the operator.
    pub life: usize,
    /// What was asked.
    pub call: Call,
    /// Whether a reconcile asked, and not a cache.
    pub in_run: bool,
    /// The code of the answer, if there was one.
    pub code: Option<u16>,
    /// Whether it changed something.
    pub changed: bool,
    /// What went wrong with it.
    pub fault: Option<super::plan::CallFault>,
}

/// An event that a watch of the operator delivered.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// How often everything had settled before.
    pub step: usize,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: String,
    /// The plural of the kind.
    pub resource: String,
    /// The name of the object.
    pub name: String,
    /// The revision of the event.
    pub revision: u64,
}

/// An order to whoever runs the operator.
#[derive(Debug)]
pub(super) enum Order {
    /// It ends at once, and is started again after a while.
    Crash,
    /// As `Crash`; it is started when told.
    Down(tokio::sync::oneshot::Receiver<()>),
}

/// What the run may not exceed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) calls: usize,
    pub(super) per_instant: usize,
}

pub(super) struct Session {
    pub(super) plan: Plan,
    pub(super) store: Store,
    clock: Clock,
    began: Instant,
    budget: Budget,
    orders: mpsc::Sender<Order>,
    /// Tells the user not to wait any longer.
    pub(super) hurry: Notify,
    /// Tells that the user has acted.
    pub(super) acted: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) step: usize,
    pub(super) life: usize,
    pub(super) calls: Vec<Called>,
    pub(super) events: Vec<Delivered>,
    /// The keys of objects that the operator made.
    pub(super) made: BTreeSet<String>,
    /// The keys and uids of objects that others changed on purpose: what they put there must stay.
    pub(super) meddled: BTreeMap<String, String>,
    /// What was done to the world by the plan: these may come and go.
    pub(super) deleted: BTreeSet<String>,
    pub(super) violations: Vec<String>,
    /// Until when caches see the state of which revision.
    stale: Option<(Duration, Revision)>,
    at_instant: (Duration, usize),
    /// When the operator last tried to write something.
    pub(super) active_at: Duration,
    over: bool,
}

impl Session {
    pub(super) fn new(plan: Plan, store: Store, clock: Clock, budget: Budget, orders: mpsc::Sender<Order>) -> Self {
        let began = Instant::now();
        Self {
            plan,
            store,
            clock,
            began,
            budget,
            orders,
            hurry: Notify::new(),
            acted: Notify::new(),
            state: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code that can panic runs under this lock")
    }

    /// The time since the run began.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The clock of the operator.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A call begins; `None` if the operator has had its share, or lives no longer.
    pub(super) fn begin(&self, life: usize, call: &Call, in_run: bool) -> Option<usize> {
        let now = self.now();
        let mut state = self.lock();
        if state.life != life || state.over {
            return None;
        }
        let count = if state.at_instant.0 == now { state.at_instant.1 + 1 } else { 1 };
        state.at_instant = (now, count);
        if call.is_write() {
            state.active_at = now;
        }
        let number = state.calls.len();
        if number >= self.budget.calls || count > self.budget.per_instant {
            state.over = true;
            let what = Shown(call);
            state.violations.push(if count > self.budget.per_instant {
                format!("hot loop: {count} calls without a pause, the last one {what}")
            } else {
                format!("unbounded requests: {number} calls, the last one {what}")
            });
            return None;
        }
        let (step, fault) = (state.step, self.plan.at_call(number));
        let call = call.clone();
        state.calls.push(Called { number, at: now, step, life, call, in_run, code: None, changed: false, fault });
        Some(number)
    }

    pub(super) fn end(&self, number: usize, code: Option<u16>, changed: bool) {
        let mut state = self.lock();
        state.calls[number].code = code;
        state.calls[number].changed = changed;
    }

    /// An event is about to be delivered.
    pub(super) fn deliver(&self, event: Delivered) -> usize {
        let mut state = self.lock();
        let number = state.events.len();
        let step = state.step;
        state.events.push(Delivered { step, ..event });
        number
    }

    pub(super) fn lives(&self, life: usize) -> bool {
        let state = self.lock();
        state.life == life && !state.over
    }

    /// The operator's process ends now.
    pub(super) fn crash(&self) {
        self.lock().life += 1;
        self.order(Order::Crash);
    }

    pub(super) fn order(&self, order: Order) {
        // Whoever runs the operator ends with the run only.
        let _ = self.orders.try_send(order);
    }

    /// From its next start on, the operator's caches see what there was at `revision` for a while.
    pub(super) fn look_back(&self, revision: Revision) {
        self.lock().stale = Some((self.now() + DOWN + HELD, revision));
    }

    /// What caches are to see instead of the present.
    pub(super) fn view(&self) -> Option<(Duration, Revision)> {
        let now = self.now();
        self.lock().stale.filter(|(until, _)| *until > now)
    }

    /// Lets the user act now, and waits until that has happened.
    pub(super) async fn let_user_act(&self) {
        // What the user did before does not count.
        let _ = self.acted.notified().now_or_never();
        self.hurry.notify_one();
        let _ = tokio::time::timeout(USER_WAIT, self.acted.notified()).await;
    }

    pub(super) fn violate(&self, what: String) {
        let mut state = self.lock();
        if !state.violations.contains(&what) {
            state.violations.push(what);
        }
    }
}

/// A call as reports show it.
pub(super) struct Shown<'a>(pub(super) &'a Call);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { verb, resource, subresource, namespace, name, .. } = self.0;
        write!(f, "{verb} {resource}")?;
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        match (namespace, name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, None) => Ok(()),
        }
    }
}
