//! What a controller's author implements, and how a reconcile can end.

use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::endpoint::Endpoints;
use crate::events::Recorder;
use crate::follow::Wishes;
use crate::health::Health;
use crate::informer::{Informer, Informers};
use crate::journal::{Runs, Served, Subject};
use crate::key::ObjectKey;
use crate::loops::Loops;
use crate::metrics::Metrics;
use crate::object::Object;
use crate::queue::Key;
use crate::tap::Tap;
use crate::trace::Tracer;
use crate::watch::Watch;
use windlass_clock::Clock;

/// How a reconcile that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing to do until something changes.
    Await,
    /// To be looked at again after this time, or when something changes.
    Recheck(Duration),
}

impl Action {
    /// The sooner of two.
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Recheck(a), Self::Recheck(b)) => Self::Recheck(a.min(b)),
            (Self::Await, action) | (action, Self::Await) => action,
        }
    }
}

/// Why a reconcile failed, and so what comes next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API refused or did not answer: tried again with the object's back-off.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The object cannot be served as it is: waits for a change, is not tried again.
    #[error("{0}")]
    Invalid(String),
    /// To be tried again after a time of its own; counts as a failure.
    #[error("{why}")]
    Later {
        /// How long to wait.
        after: Duration,
        /// What failed.
        why: String,
    },
    /// Anything else: tried again with the object's back-off.
    #[error(transparent)]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps any error, or a text.
    pub fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    /// Whether somebody else was faster: ordinary, and gone at the next attempt.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.code == 409)
    }
}

/// How a run ended that did not come back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Crash {
    /// It panicked, with this message.
    #[error("panic: {0}")]
    Panic(String),
    /// It was dropped at its deadline.
    #[error("did not finish within {0:?}")]
    Deadline(Duration),
}

impl Crash {
    /// A word for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Panic(_) => "ReconcilePanicked",
            Self::Deadline(_) => "ReconcileTimedOut",
        }
    }
}

/// Brings one object to where it is declared to be.
///
/// It is called with the newest known state whenever the object, or anything mapped to it, may have changed; never
/// twice at the same time for one object. An object that is gone is not seen, unless [`Reconcile::gone`] is written.
pub trait Reconcile: Send + Sync + 'static {
    /// The kind that is reconciled.
    type Resource: Object;

    /// Looks and acts once.
    fn reconcile(
        &self,
        object: Arc<Self::Resource>,
        context: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<Action, Error>> + Send;

    /// A run for `object` panicked or was dropped at its deadline; an event tells of it already. For a word in its status.
    fn crashed(
        &self,
        object: Arc<Self::Resource>,
        crash: &Crash,
        context: &Context<Self::Resource>,
    ) -> impl Future<Output = ()> + Send {
        let _ = (object, crash, context);
        std::future::ready(())
    }

    /// The object called `key` no longer exists. For memory that is kept per object; use finalizers to clean up the world.
    fn gone(&self, key: &ObjectKey) {
        let _ = key;
    }

    /// The controller ends: no run is in progress, and none begins any more. For tasks that runs left behind.
    fn ended(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Work by key, where the key is not the name of one kind's object: a uid, a pair, a kind.
pub trait Process: Send + Sync + 'static {
    /// What stands in the queue.
    type Key: Key;

    /// Works on `key` once.
    fn process(&self, key: &Self::Key, attempt: &Attempt) -> impl Future<Output = Result<Action, Error>> + Send;

    /// A run for `key` panicked or was dropped at its deadline.
    fn crashed(&self, key: &Self::Key, crash: &Crash, attempt: &Attempt) -> impl Future<Output = ()> + Send {
        let _ = (key, crash, attempt);
        std::future::ready(())
    }

    /// The object that `key` stands for, if it is one: for the log and the journal.
    fn subject(&self, key: &Self::Key) -> Option<Subject> {
        let _ = key;
        None
    }

    /// Whether there is something behind `key` still. Replicas that share the work keep those for which there is.
    fn exists(&self, key: &Self::Key) -> bool {
        let _ = key;
        true
    }

    /// All runs have ended, and none begins any more.
    fn ended(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// The circumstances of one run.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// How many runs in a row failed before this one.
    pub failures: u32,
    /// Cancelled when the process is to stop, or no longer leads.
    pub stop: CancellationToken,
}

/// What controllers of one manager share; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    /// The API, through the tap.
    pub client: Client,
    /// The caches.
    pub informers: Informers,
    /// Events for people.
    pub events: Recorder,
    /// The time.
    pub clock: Clock,
    /// The operator's name, which is also its field manager.
    pub name: Arc<str>,
    /// The name of the cluster, if the manager has several and this is not its own.
    pub cluster: Option<Arc<str>>,
    /// The tap that the calls pass.
    pub tap: Tap,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    pub(crate) endpoints: Endpoints,
    pub(crate) loops: Option<Loops>,
    /// The journal, if one is kept.
    pub(crate) runs: Option<Runs>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) served: Arc<Mutex<Vec<Served>>>,
    /// Whether all writes are caught, and nothing outside of the cluster is to be touched.
    pub(crate) rehearsal: bool,
}

impl Handle {
    /// What a controller called `name` is called where there are several clusters.
    pub(crate) fn name_of(&self, name: &str) -> String {
        match &self.cluster {
            Some(cluster) => format!("{name}@{cluster}"),
            None => name.to_owned(),
        }
    }
}

/// What a reconcile may use besides the object.
pub struct Context<K: Object> {
    pub(crate) handle: Handle,
    pub(crate) informer: Informer<K>,
    pub(crate) attempt: Attempt,
    pub(crate) wishes: Wishes,
    /// Whether a person asked for this run.
    pub(crate) forced: AtomicBool,
}

impl<K: Object> Context<K> {
    /// Watches something on behalf of this object, which is then reconciled whenever a part of it changes. What a run that
    /// succeeds does not ask for again is followed no longer, and a watch that nobody follows ends.
    pub fn follow<C: Object>(&self, watch: Watch<C>) -> Informer<C> {
        self.wishes.follow(&self.handle.informers, watch)
    }

    /// The API. Every call is seen by the tap, and the caches know the outcome of a write before its caller does.
    pub fn client(&self) -> Client {
        self.handle.client.clone()
    }

    /// The caches of this manager.
    pub fn informers(&self) -> &Informers {
        &self.handle.informers
    }

    /// The cache of the reconciled kind.
    pub fn cache(&self) -> &Informer<K> {
        &self.informer
    }

    /// Events for people.
    pub fn events(&self) -> &Recorder {
        &self.handle.events
    }

    /// The time.
    pub fn clock(&self) -> &Clock {
        &self.handle.clock
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.handle.metrics
    }

    /// The operator's name, which is also its field manager.
    pub fn name(&self) -> &str {
        &self.handle.name
    }

    /// Whether a person asked by the annotation `windlass.dev/reconcile` that all be done anew in this run, also what seems
    /// to be as wanted. Only programs have the switches, see [`Switched`](crate::Switched).
    pub fn is_forced(&self) -> bool {
        self.forced.load(Ordering::Relaxed)
    }

    pub(crate) fn force(&self, forced: bool) {
        self.forced.store(forced, Ordering::Relaxed);
    }

    /// The circumstances of this run.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}
