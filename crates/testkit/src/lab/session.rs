//! What is known of one run while it goes on: calls, events, lives of the operator, and what is to go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use windlass::runtime::tap::{Call, Rights};
use windlass_clock::Clock;
use windlass_store::{Revision, Store};

use super::log::Log;
use super::plan::{CallFault, Plan};
use super::roles::Borders;

/// How long the operator is down after a crash.
pub(crate) const DOWN: Duration = Duration::from_secs(1);
/// How long events are held back, and caches see the past. Less than it takes to count as settled.
pub(crate) const HELD: Duration = Duration::from_secs(5);
/// How long a process stands still that loses the lead meanwhile: longer than the lease lasts.
pub(crate) const STALLED: Duration = Duration::from_secs(20);
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
    pub fault: Option<CallFault>,
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
pub(crate) enum Order {
    /// It ends at once, and is started again after a while.
    Crash,
    /// As `Crash`; it is started when told.
    Down(tokio::sync::oneshot::Receiver<()>),
    /// Another one is started beside it.
    Replace,
}

/// Something that the operator says, asked when somebody looks.
type Voice = Box<dyn Fn() -> String + Send>;

/// What a run is given.
pub(crate) struct Terms {
    pub(crate) plan: Plan,
    pub(crate) budget: Budget,
    pub(crate) borders: Arc<Borders>,
    pub(crate) log: Log,
}

/// What the run may not exceed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) calls: usize,
    pub(crate) per_instant: usize,
}

pub(crate) struct Session {
    pub(crate) plan: Plan,
    pub(crate) store: Store,
    pub(crate) borders: Arc<Borders>,
    pub(crate) log: Log,
    clock: Clock,
    began: Instant,
    budget: Budget,
    orders: mpsc::Sender<Order>,
    /// Tells the user not to wait any longer.
    pub(crate) hurry: Notify,
    /// Tells that the user has acted.
    pub(crate) acted: Notify,
    voices: Mutex<Vec<(&'static str, Voice)>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) step: usize,
    pub(crate) life: usize,
    /// The life before, if it goes on though it leads no longer, and until when it stands still.
    deposed: Option<(usize, Duration)>,
    /// The rights that the operator took.
    pub(crate) rights: Rights,
    pub(crate) calls: Vec<Called>,
    pub(crate) events: Vec<Delivered>,
    /// The keys of objects that the operator made, and how often.
    pub(crate) made: BTreeMap<String, usize>,
    /// The keys and uids of objects that others changed on purpose: what they put there must stay.
    pub(crate) meddled: BTreeMap<String, String>,
    /// What was done to the world by the plan: these may come and go.
    pub(crate) deleted: BTreeSet<String>,
    pub(crate) violations: Vec<String>,
    /// Until when caches see the state of which revision.
    stale: Option<(Duration, Revision)>,
    at_instant: (Duration, usize),
    /// When the operator last tried to write something.
    pub(crate) active_at: Duration,
    over: bool,
}

impl Session {
    pub(crate) fn new(terms: Terms, store: Store, clock: Clock, orders: mpsc::Sender<Order>) -> Self {
        let Terms { plan, budget, borders, log } = terms;
        Self {
            plan,
            store,
            borders,
            log,
            clock,
            began: Instant::now(),
            budget,
            orders,
            hurry: Notify::new(),
            acted: Notify::new(),
            voices: Mutex::default(),
            state: Mutex::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code that can panic runs under this lock")
    }

    /// The time since the run began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The clock of the operator.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A call begins; `None` if the operator has had its share, or lives no longer.
    pub(crate) fn begin(&self, life: usize, call: &Call, in_run: bool) -> Option<usize> {
        let now = self.now();
        let mut state = self.lock();
        if !state.lives(life) {
            return None;
        }
        if state.life != life && call.is_write() {
            state.violations.push(format!("{} by a replica that no longer leads", Shown(call)));
        }
        let count = if state.at_instant.0 == now { state.at_instant.1 + 1 } else { 1 };
        state.at_instant = (now, count);
        if call.is_write() {
            state.active_at = state.active_at.max(now);
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

    pub(crate) fn end(&self, number: usize, code: Option<u16>, changed: bool) {
        let mut state = self.lock();
        state.calls[number].code = code;
        state.calls[number].changed = changed;
    }

    /// Takes note of the right that a call took.
    pub(crate) fn took(&self, call: &Call, code: u16) {
        self.lock().rights.record(call, Some(code));
    }

    /// An event is about to be delivered.
    pub(crate) fn deliver(&self, event: Delivered) -> usize {
        let mut state = self.lock();
        let number = state.events.len();
        let step = state.step;
        state.events.push(Delivered { step, ..event });
        number
    }

    pub(crate) fn lives(&self, life: usize) -> bool {
        self.lock().lives(life)
    }

    /// No life goes on.
    pub(crate) fn end_all(&self) {
        let mut state = self.lock();
        state.life += 1;
        state.deposed = None;
    }

    /// The operator's process stands still for a while, and another one takes its place.
    pub(crate) fn depose(&self) {
        let until = self.now() + STALLED;
        let mut state = self.lock();
        state.deposed = Some((state.life, until));
        state.life += 1;
        // The other one waits until the lease is over, and nothing has settled before that.
        state.active_at = until;
        drop(state);
        self.order(Order::Replace);
    }

    /// How long the process of this life still stands still.
    pub(crate) fn stalled(&self, life: usize) -> Duration {
        let now = self.now();
        let until = self.lock().deposed.filter(|(deposed, _)| *deposed == life);
        until.map_or(Duration::ZERO, |(_, until)| until.saturating_sub(now))
    }

    /// Lets `voice` be listened to when somebody looks.
    pub(crate) fn hear(&self, what: &'static str, voice: impl Fn() -> String + Send + 'static) {
        self.voices.lock().expect("no code that can panic runs under this lock").push((what, Box::new(voice)));
    }

    /// What the operator says now, in all its lives.
    pub(crate) fn said(&self) -> Vec<(&'static str, String)> {
        let voices = self.voices.lock().expect("no code that can panic runs under this lock");
        voices.iter().map(|(what, voice)| (*what, voice())).collect()
    }

    /// The operator's process ends now.
    pub(crate) fn crash(&self) {
        self.end_all();
        self.order(Order::Crash);
    }

    pub(crate) fn order(&self, order: Order) {
        // Whoever runs the operator ends with the run only.
        let _ = self.orders.try_send(order);
    }

    /// From its next start on, the operator's caches see what there was at `revision` for a while.
    pub(crate) fn look_back(&self, revision: Revision) {
        self.lock().stale = Some((self.now() + DOWN + HELD, revision));
    }

    /// What caches are to see instead of the present.
    pub(crate) fn view(&self) -> Option<(Duration, Revision)> {
        let now = self.now();
        self.lock().stale.filter(|(until, _)| *until > now)
    }

    /// Lets the user act now, and waits until that has happened.
    pub(crate) async fn let_user_act(&self) {
        // What the user did before does not count.
        let _ = self.acted.notified().now_or_never();
        self.hurry.notify_one();
        let _ = tokio::time::timeout(USER_WAIT, self.acted.notified()).await;
    }

    pub(crate) fn violate(&self, what: String) {
        let mut state = self.lock();
        if !state.violations.contains(&what) {
            state.violations.push(what);
        }
    }
}

impl State {
    fn lives(&self, life: usize) -> bool {
        let is_deposed = self.deposed.is_some_and(|(deposed, _)| deposed == life);
        (self.life == life || is_deposed) && !self.over
    }
}

/// A call as reports show it.
pub(crate) struct Shown<'a>(pub(crate) &'a Call);

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

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_of_a_replica_that_no_longer_leads_is_told() {
        let budget = Budget { calls: 10, per_instant: 10 };
        let terms = Terms { plan: Plan::default(), budget, borders: Arc::default(), log: Log::default() };
        let (orders, mut received) = mpsc::channel(1);
        let session = Session::new(terms, Store::in_memory(), Clock::manual(jiff::Timestamp::UNIX_EPOCH), orders);
        let path = "/api/v1/namespaces/a/configmaps/c";
        let [get, patch] = [Method::GET, Method::PATCH].map(|method| Call::parse(&method, path, None));
        session.depose();
        assert!(matches!(received.recv().await, Some(Order::Replace)));
        assert_eq!((session.stalled(0), session.stalled(1)), (STALLED, Duration::ZERO));
        assert!(session.begin(0, &get, true).is_some() && session.begin(1, &patch, true).is_some());
        assert!(session.lock().violations.is_empty());
        session.begin(0, &patch, true);
        let expected = "patch configmaps a/c by a replica that no longer leads";
        assert_eq!(session.lock().violations, [expected]);
        session.end_all();
        assert!(!session.lives(0) && !session.lives(1) && session.lives(2));
    }
}
