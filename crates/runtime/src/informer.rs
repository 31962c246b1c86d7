//! Watches with a cache: shared by all who ask for the same, ended when the last one lets go.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Client;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::backoff::Backoff;
use crate::cache::{Cache, Change};
use crate::health::{Check, Health};
use crate::key::ObjectKey;
use crate::object::{Delivery, Guarded, Object, Plain};
use crate::tap::{Call, Tap};
use crate::watch::{Watch, WatchKey};
use windlass_clock::Clock;

/// A watch without an error for this long after a failure has recovered.
const RECOVERED_AFTER: Duration = Duration::from_secs(10);

/// The informers of one manager; clones are the same register.
#[derive(Clone)]
pub struct Informers(Arc<Register>);

struct Register {
    client: Client,
    clock: Clock,
    health: Health,
    /// The one field manager whose managed fields are kept in caches; the others are dropped to save memory.
    field_manager: String,
    informers: Mutex<HashMap<WatchKey, Weak<dyn AnyInformer>>>,
}

/// A running watch and its cache; clones share both.
#[derive(Debug)]
pub struct Informer<K: Object>(Arc<Shared<K>>);

impl<K: Object> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Shared<K: Object> {
    watch: Watch<K>,
    feed: Arc<Feed<K>>,
    field_manager: String,
    _running: DropGuard,
}

/// The cache and those who want to hear of its changes.
struct Feed<K: Object> {
    cache: Cache<K>,
    synced: tokio::sync::watch::Sender<bool>,
    listeners: Mutex<Vec<(u64, Listener<K>)>>,
    /// Held while a change is taken in and told: the watch and the answers to own writes arrive on different threads, and
    /// a listener that keeps a state of its own must not hear of a life after its end.
    order: Mutex<()>,
}

type Listener<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

/// Keeps a listener on an informer, and the informer running.
pub struct Subscription(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl Informers {
    /// Informers that read through `client`, which should be a client of `tap`, and that see the writes of `tap`.
    pub fn new(client: Client, tap: &Tap, clock: Clock, health: Health, field_manager: impl Into<String>) -> Self {
        let informers = Mutex::new(HashMap::new());
        let register = Arc::new(Register { client, clock, health, field_manager: field_manager.into(), informers });
        let weak = Arc::downgrade(&register);
        tap.on_write(Box::new(move |call, answer| {
            if let Some(register) = weak.upgrade() {
                register.wrote(call, answer);
            }
        }));
        Self(register)
    }

    /// The informer for `watch`: a running one if there is one, else one that starts now.
    pub fn get<K: Object>(&self, watch: Watch<K>) -> Informer<K> {
        let mut informers = self.0.informers.lock().expect("no code that can panic runs under this lock");
        informers.retain(|_, informer| informer.strong_count() > 0);
        let key = watch.key();
        if let Some(running) = informers.get(&key).and_then(Weak::upgrade) {
            let running: Arc<dyn Any + Send + Sync> = running;
            return Informer(running.downcast().expect("the key holds the type"));
        }
        let shared = Arc::new(self.start(watch));
        let weak: Weak<Shared<K>> = Arc::downgrade(&shared);
        informers.insert(key, weak);
        Informer(shared)
    }

    /// All objects of a kind that is known at compile time.
    pub fn all<K: Object<DynamicType: Default>>(&self) -> Informer<K> {
        self.get(Watch::all())
    }

    fn start<K: Object>(&self, watch: Watch<K>) -> Shared<K> {
        let register = &self.0;
        let feed = Arc::new(Feed {
            cache: Cache::default(),
            synced: tokio::sync::watch::Sender::new(false),
            listeners: Mutex::default(),
            order: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let runner = Runner {
            feed: feed.clone(),
            clock: register.clock.clone(),
            check: register.health.check(format!("watch {}", watch.title()), "has not listed yet"),
            title: watch.title(),
            field_manager: register.field_manager.clone(),
        };
        let (client, stopped, watched) = (register.client.clone(), stop.clone(), watch.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = runner.run(&watched, client) => {}
            }
        });
        Shared { watch, feed, field_manager: register.field_manager.clone(), _running: stop.drop_guard() }
    }
}

impl Register {
    fn wrote(&self, call: &Call, answer: &[u8]) {
        let interested: Vec<_> = {
            let informers = self.informers.lock().expect("no code that can panic runs under this lock");
            let same_kind =
                |key: &WatchKey| key.group == call.group && key.version == call.version && key.plural == call.resource;
            informers.iter().filter(|(key, _)| same_kind(key)).filter_map(|(_, informer)| informer.upgrade()).collect()
        };
        if interested.is_empty() {
            return;
        }
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return };
        for informer in interested {
            informer.wrote(call, &answer);
        }
    }
}

/// An informer of any kind.
trait AnyInformer: Any + Send + Sync {
    fn wrote(&self, call: &Call, answer: &Value);
}

impl<K: Object> AnyInformer for Shared<K> {
    fn wrote(&self, call: &Call, answer: &Value) {
        let is_delete = call.verb == "delete";
        if answer["kind"] == "Status" {
            // The answer to a deletion that took effect at once names the uid only.
            if let (true, Some(uid)) = (is_delete, answer["details"]["uid"].as_str()) {
                self.feed.change(|cache| cache.deleted(uid));
            }
            return;
        }
        // An object that comes back from a deletion without a deletion timestamp is the one that was removed.
        let is_other_kind = answer["kind"] != self.watch.kind().as_str();
        if is_other_kind || (is_delete && answer["metadata"]["deletionTimestamp"].is_null()) {
            return;
        }
        let Ok(mut object) = K::deserialize(answer) else { return };
        if self.watch.matches(&object) {
            slim(&mut object, &self.field_manager);
            self.feed.change(|cache| cache.wrote(object, self.watch.selects_fields()));
        }
    }
}

impl<K: Object> Informer<K> {
    /// Calls `listener` for every change from now on, after telling it of all objects that are known already.
    /// It runs inside the watch: keep it short.
    pub fn subscribe(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) -> Subscription {
        let id = self.0.feed.add(Arc::new(listener));
        Subscription(Box::new(Subscribed { informer: self.clone(), id }))
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.0.feed.synced.subscribe();
        synced.wait_for(|synced| *synced).await.expect("the informer holds the sender");
    }

    /// What is watched, in words.
    pub fn title(&self) -> String {
        self.0.watch.title()
    }
}

impl<K: Object> std::ops::Deref for Informer<K> {
    type Target = Cache<K>;

    fn deref(&self) -> &Cache<K> {
        &self.0.feed.cache
    }
}

struct Subscribed<K: Object> {
    informer: Informer<K>,
    id: u64,
}

impl<K: Object> Drop for Subscribed<K> {
    fn drop(&mut self) {
        let mut listeners = self.informer.0.feed.listeners.lock().expect("listeners do not run under this lock");
        listeners.retain(|(id, _)| *id != self.id);
    }
}

impl<K: Object> Feed<K> {
    fn add(&self, listener: Listener<K>) -> u64 {
        let _order = self.order();
        let id = {
            let mut listeners = self.listeners.lock().expect("listeners do not run under this lock");
            let id = listeners.last().map_or(0, |(id, _)| id + 1);
            listeners.push((id, listener.clone()));
            id
        };
        for object in self.cache.all() {
            listener(&Change { old: None, new: Some(object), listed: true });
        }
        id
    }

    /// Takes a change in and tells of it. Listeners hear changes in the order in which the cache took them in.
    fn change<C: IntoIterator<Item = Change<K>>>(&self, act: impl FnOnce(&Cache<K>) -> C) {
        let _order = self.order();
        let changes: Vec<Change<K>> = act(&self.cache).into_iter().collect();
        self.tell(&changes);
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        // A listener that panicked has not harmed what this lock guards.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, changes: &[Change<K>]) {
        let listeners: Vec<_> = {
            let listeners = self.listeners.lock().expect("listeners do not run under this lock");
            listeners.iter().map(|(_, listener)| listener.clone()).collect()
        };
        for change in changes {
            for listener in &listeners {
                listener(change);
            }
        }
    }
}

impl<K: Object> std::fmt::Debug for Feed<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("objects", &self.cache.len()).finish_non_exhaustive()
    }
}

/// The task behind an informer.
struct Runner<K: Object> {
    feed: Arc<Feed<K>>,
    clock: Clock,
    check: Check,
    title: String,
    field_manager: String,
}

impl<K: Object> Runner<K> {
    async fn run(self, watch: &Watch<K>, client: Client) {
        self.follow(watcher::watcher(watch.api::<Plain<K>>(client.clone()), watch.config())).await;
        tracing::warn!(watch = %self.title, "Some objects cannot be read; they are left out");
        self.follow(watcher::watcher(watch.api::<Guarded<K>>(client), watch.config())).await;
    }

    /// Takes in events until one cannot be read.
    async fn follow<D: Delivery<K>>(&self, events: impl Stream<Item = watcher::Result<Event<D>>> + Send) {
        let mut events = std::pin::pin!(events.map(|event| event.map(Some)));
        let mut failures = 0;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                // A watch that was taken up again says nothing until something happens: no news is good news.
                () = self.clock.sleep(RECOVERED_AFTER), if failures > 0 => Some(Ok(None)),
            };
            match event {
                Some(Ok(event)) => {
                    failures = 0;
                    self.observe(event);
                }
                Some(Err(error)) if is_unreadable(&error) => return,
                Some(Err(error)) => {
                    failures += 1;
                    self.failed(&error, failures).await;
                }
                None => return,
            }
        }
    }

    fn observe<D: Delivery<K>>(&self, event: Option<Event<D>>) {
        let is_listed = matches!(event, Some(Event::InitDone));
        match event.map(|event| self.open(event)) {
            Some(Ok(event)) => self.feed.change(|cache| cache.observe(event)),
            Some(Err(key)) => self.feed.change(|cache| cache.unreadable(&key)),
            None => {}
        }
        if self.feed.cache.is_synced() {
            self.check.well();
        }
        if is_listed {
            self.feed.synced.send_replace(true);
        }
    }

    /// The event with its object, or the name of an object that cannot be read.
    fn open<D: Delivery<K>>(&self, event: Event<D>) -> Result<Event<K>, ObjectKey> {
        let read = |delivery: D| {
            let mut object = delivery.open().map_err(|bad| {
                let key = ObjectKey { namespace: bad.meta.namespace, name: bad.meta.name.unwrap_or_default() };
                tracing::warn!(watch = %self.title, object = %key, error = bad.why, "Cannot read the object");
                key
            })?;
            slim(&mut object, &self.field_manager);
            Ok(object)
        };
        Ok(match event {
            Event::Apply(delivery) => Event::Apply(read(delivery)?),
            Event::Delete(delivery) => Event::Delete(read(delivery)?),
            Event::InitApply(delivery) => Event::InitApply(read(delivery)?),
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
        })
    }

    async fn failed(&self, error: &watcher::Error, failures: u32) {
        // A watch that ends now and then, or falls behind, is ordinary; one that does not come back is not.
        if failures > 1 || !self.feed.cache.is_synced() {
            let advice = advice(error);
            tracing::warn!(watch = %self.title, %error, "Cannot watch{advice}");
            self.check.trouble(format!("{error}{advice}"));
        } else {
            tracing::debug!(watch = %self.title, %error, "Watch interrupted");
        }
        let backoff = if code(error) == Some(404) { Backoff::MISSING_KIND } else { Backoff::WATCH };
        self.clock.sleep(backoff.jittered(failures)).await;
    }
}

/// The HTTP status that a watch failed with, if there was an answer.
fn code(error: &watcher::Error) -> Option<u16> {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => Some(status.code),
        _ => None,
    }
}

/// What a person can do about a watch that fails.
fn advice(error: &watcher::Error) -> &'static str {
    match code(error) {
        Some(404) => ": the API does not know this kind yet; apply its definition",
        Some(403) => ": allow get, list and watch in the role",
        Some(401) => ": the credentials are not accepted",
        _ => "",
    }
}

/// Whether the trouble is the contents of an object, and not the way to the API.
fn is_unreadable(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed};
    matches!(error, InitialListFailed(kube::Error::SerdeError(_)) | WatchFailed(kube::Error::SerdeError(_)))
}

/// Drops what no reconcile reads: the managed fields of everyone but this operator.
fn slim<K: Object>(object: &mut K, field_manager: &str) {
    if let Some(fields) = &mut object.meta_mut().managed_fields {
        fields.retain(|entry| entry.manager.as_deref() == Some(field_manager));
    }
}
