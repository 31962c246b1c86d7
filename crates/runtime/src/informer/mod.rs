//! Watches with a cache: shared by all who ask for the same, ended when the last one lets go.

mod feed;
mod leg;
mod wire;

use std::any::Any;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use kube::Client;
use serde::Deserialize;
use tokio_util::task::AbortOnDropHandle;

pub use feed::Subscription;

use self::feed::{Feed, Progress};
use self::leg::Watcher;
use crate::cache::{Cache, IndexId, StateId};
use crate::health::Health;
use crate::journal;
use crate::key::ObjectKey;
use crate::loops::{self, FieldChange, Loops};
use crate::metrics::Metrics;
use crate::object::{Known, Object};
use crate::tap::{Call, Tap};
use crate::watch::{Watch, WatchKey};
use windlass_clock::Clock;

/// The informers of one manager; clones are the same register.
#[derive(Clone)]
pub struct Informers(Arc<Register>);

struct Register {
    client: Client,
    surroundings: Surroundings,
    informers: Mutex<HashMap<WatchKey, Weak<dyn AnyInformer>>>,
}

/// What informers share with the rest of a manager.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) clock: Clock,
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    /// The operator's name: of managed fields, caches keep what it applied.
    pub(crate) field_manager: String,
    /// The cluster, where there are several.
    pub(crate) cluster: Option<Arc<str>>,
    /// Notices writes that undo each other.
    pub(crate) loops: Option<Loops>,
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
    _running: AbortOnDropHandle<()>,
}

impl Informers {
    /// Informers that read through `client`, which should be a client of `tap`, and that see the writes of `tap`.
    pub(crate) fn new(client: Client, tap: &Tap, surroundings: Surroundings) -> Self {
        let register = Arc::new(Register { client, surroundings, informers: Mutex::default() });
        let weak = Arc::downgrade(&register);
        tap.on_write(Box::new(move |call, answer, before| {
            if let Some(register) = weak.upgrade() {
                register.wrote(call, answer, before);
            }
        }));
        let weak = Arc::downgrade(&register);
        tap.ask(Box::new(move |call| weak.upgrade()?.known(call)));
        Self(register)
    }

    /// The informer for `watch`: a running one if there is one, else one that starts now.
    pub fn get<K: Object>(&self, watch: Watch<K>) -> Informer<K> {
        let mut informers = self.0.informers.lock().expect("no code that can panic runs under this lock");
        informers.retain(|_, informer| informer.strong_count() > 0);
        let key = watch.key();
        if let Some(running) = informers.get(&key).and_then(Weak::upgrade) {
            let running: Arc<dyn Any + Send + Sync> = running;
            let informer = Informer(running.downcast::<Shared<K>>().expect("the key holds the type"));
            if !watch.is_compact() {
                informer.keep_open();
            }
            return informer;
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
        let feed = Arc::new(Feed::new(register.surroundings.field_manager.clone(), watch.is_compact()));
        let watcher = Watcher {
            target: watch.target(),
            namespaces: watch.namespaces().clone(),
            intake: feed.clone(),
            client: register.client.clone(),
            surroundings: register.surroundings.clone(),
        };
        let running = AbortOnDropHandle::new(tokio::spawn(watcher.run()));
        Shared { watch, feed, _running: running }
    }
}

impl Register {
    /// The informers of the kind of a call.
    fn interested(&self, call: &Call) -> Vec<Arc<dyn AnyInformer>> {
        let informers = self.informers.lock().expect("no code that can panic runs under this lock");
        let same_kind =
            |key: &WatchKey| key.group == call.group && key.version == call.version && key.plural == call.resource;
        informers.iter().filter(|(key, _)| same_kind(key)).filter_map(|(_, informer)| informer.upgrade()).collect()
    }

    /// What is known of the object that a call changes.
    fn known(&self, call: &Call) -> Option<Known> {
        let key = loops::changed_object(call)?;
        self.interested(call).iter().find_map(|informer| informer.known(&key))
    }

    fn wrote(&self, call: &Call, text: &[u8], before: Option<Known>) {
        let interested = self.interested(call);
        if interested.is_empty() {
            return;
        }
        let Ok(answer) = serde_json::from_slice::<Answer>(text) else { return };
        let key = loops::changed_object(call);
        let (mut before, mut after) = (before, None);
        for informer in interested {
            // Of the one that knew the object before: others may have another form of it.
            let known = key.as_ref().and_then(|key| informer.known(key));
            let now = informer.wrote(call, &answer, text);
            if known.is_some() && after.is_none() {
                before = before.or(known);
                after = now;
            }
        }
        let Some((before, after)) = before.zip(after) else { return self.look_for_loops(call, text, || None) };
        let changes = OnceCell::new();
        let changes = || changes.get_or_init(|| loops::changed(&before.value(), &after.value())).clone();
        if journal::is_recorded() {
            journal::changed(call, changes().into_iter().map(|change| change.path));
        }
        self.look_for_loops(call, text, || Some(changes()));
    }

    fn look_for_loops(&self, call: &Call, text: &[u8], changes: impl FnOnce() -> Option<Vec<FieldChange>>) {
        if let Some(loops) = &self.surroundings.loops {
            loops.wrote(call, text, changes);
        }
    }
}

/// What must be known of the answer to a write before it is read: an object, or a word about its deletion.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: AnsweredMeta,
    #[serde(default)]
    details: Option<AnsweredMeta>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnsweredMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
}

impl AnsweredMeta {
    fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey { namespace: self.namespace.clone(), name: self.name.clone()? })
    }

    fn state(&self) -> StateId {
        StateId::of(self.uid.as_deref(), self.resource_version.as_deref())
    }
}

/// An informer of any kind.
trait AnyInformer: Any + Send + Sync {
    /// Takes in the answer to a write, and gives the object that is in it.
    fn wrote(&self, call: &Call, answer: &Answer, text: &[u8]) -> Option<Known>;
    /// The object as it is known.
    fn known(&self, key: &ObjectKey) -> Option<Known>;
}

impl<K: Object> AnyInformer for Shared<K> {
    fn wrote(&self, call: &Call, answer: &Answer, text: &[u8]) -> Option<Known> {
        let is_delete = call.verb == "delete";
        if answer.kind == "Status" {
            // The answer to a deletion that took effect at once names the uid only.
            let uid = answer.details.as_ref().and_then(|details| details.uid.as_deref());
            if let Some(uid) = uid.filter(|_| is_delete) {
                self.feed.change(|cache| cache.deleted(uid, call.namespace.as_deref()));
            }
            return None;
        }
        // An object that comes back from a deletion without a deletion timestamp is the one that was removed.
        let is_removed = is_delete && answer.metadata.deletion_timestamp.is_none();
        if is_removed || answer.kind != self.watch.kind() {
            return None;
        }
        // The watch may have been faster.
        if let Some(known) = answer.metadata.key().and_then(|key| self.feed.cache.get_at(&key, answer.metadata.state()))
        {
            return Some(known);
        }
        let kept = self.feed.cache.keep_text(std::str::from_utf8(text).ok()?).ok()?;
        let known = kept.object()?.clone();
        if self.watch.matches(&known) {
            self.feed.change(|cache| cache.wrote(kept, self.watch.selects_fields()));
        }
        Some(known)
    }

    fn known(&self, key: &ObjectKey) -> Option<Known> {
        Some(self.feed.cache.get(key)?)
    }
}

impl<K: Object> Informer<K> {
    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut progress = self.0.feed.progress.subscribe();
        progress.wait_for(Progress::is_synced).await.expect("the informer holds the sender");
    }

    /// Waits until the first list is complete or has failed.
    pub(crate) async fn settled(&self) {
        let mut progress = self.0.feed.progress.subscribe();
        progress.wait_for(Progress::is_settled).await.expect("the informer holds the sender");
    }

    /// Whether all objects are known: the first list is complete, in every namespace that is watched.
    pub fn is_synced(&self) -> bool {
        self.0.feed.progress.borrow().is_synced()
    }

    /// Why the objects of `namespace` (of all, if it is `None`) are not known; `None` if they are.
    pub fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        let why = self.0.feed.progress.borrow().unseen(namespace)?;
        Some(format!("{}: {why}", self.title()))
    }

    /// The kind of the objects.
    pub(crate) fn kind(&self) -> String {
        self.0.watch.kind()
    }

    /// What is watched, in words.
    pub fn title(&self) -> String {
        self.0.watch.target().title()
    }

    /// Keeps an index of the objects by the values that `values` finds in each. It is in step with the cache, own writes
    /// included; a function that panics finds nothing.
    pub fn index(&self, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Index<K> {
        let id = self.0.feed.cache.add_index(Arc::new(values));
        Index { informer: self.clone(), id }
    }
}

impl<K: Object> std::ops::Deref for Informer<K> {
    type Target = Cache<K>;

    fn deref(&self) -> &Cache<K> {
        &self.0.feed.cache
    }
}

/// Objects of an informer by a value that is in them; it keeps the informer running.
#[derive(Debug)]
pub struct Index<K: Object> {
    informer: Informer<K>,
    id: IndexId,
}

impl<K: Object> Index<K> {
    /// The objects with this value, in order of their keys.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        self.informer.indexed(self.id, value)
    }
}

impl<K: Object> Drop for Index<K> {
    fn drop(&mut self) {
        self.informer.drop_index(self.id);
    }
}
