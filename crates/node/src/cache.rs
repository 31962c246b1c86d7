//! ConfigMaps and Secrets that Pods on this node use: each watched once, while somebody uses it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// How long an object that nobody holds a lease on stays watched.
const UNUSED_FOR: Duration = Duration::from_secs(600);
/// How long a first answer of the API server is waited for.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

type Key = (TypeId, String, String);
/// `None` until the API server has answered; then whether the object exists.
type Slot<K> = Option<Option<Arc<K>>>;

/// The objects in use.
#[derive(Clone)]
pub(crate) struct Cache {
    client: Client,
    slots: Arc<Mutex<HashMap<Key, Box<dyn Any + Send>>>>,
    changes: watch::Sender<u64>,
}

/// Keeps an object watched.
pub(crate) struct Lease {
    _slot: Box<dyn Any + Send + Sync>,
}

/// What can be kept here.
pub(crate) trait Cached:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Cached for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

impl Cache {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, slots: Arc::default(), changes: watch::channel(0).0 }
    }

    /// Changes whenever any object here does.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The object, as fresh as its watch; `None` if it does not exist.
    pub(crate) async fn get<K: Cached>(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let mut slot = self.slot::<K>(namespace, name);
        let first = tokio::time::timeout(FIRST_ANSWER, slot.wait_for(Option::is_some)).await;
        first.ok()?.ok()?.clone().flatten()
    }

    /// Keeps an object watched as long as the lease is held.
    pub(crate) fn lease<K: Cached>(&self, namespace: &str, name: &str) -> Lease {
        Lease { _slot: Box::new(self.slot::<K>(namespace, name)) }
    }

    fn slot<K: Cached>(&self, namespace: &str, name: &str) -> watch::Receiver<Slot<K>> {
        let key = (TypeId::of::<K>(), namespace.to_owned(), name.to_owned());
        let mut slots = self.slots.lock().expect("the lock is never held across a panic");
        let live = slots.get(&key).and_then(|slot| slot.downcast_ref::<watch::Receiver<Slot<K>>>());
        if let Some(slot) = live.filter(|slot| slot.has_changed().is_ok()) {
            return slot.clone();
        }
        let (sender, slot) = watch::channel(None);
        let api: Api<K> = Api::namespaced(self.client.clone(), namespace);
        tokio::spawn(keep(api, name.to_owned(), sender, self.changes.clone()));
        slots.insert(key, Box::new(slot.clone()));
        slot
    }
}

/// Watches one object until it has been unused for a while. The map's own receiver does not count as use.
async fn keep<K: Cached>(api: Api<K>, name: String, slot: watch::Sender<Slot<K>>, changes: watch::Sender<u64>) {
    let events = watcher::watch_object(api, &name).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut last_used = tokio::time::Instant::now();
    loop {
        let next = tokio::time::timeout(UNUSED_FOR, events.next()).await;
        match next {
            Ok(Some(Ok(object))) => {
                slot.send_replace(Some(object.map(Arc::new)));
                changes.send_modify(|version| *version += 1);
                last_used = tokio::time::Instant::now();
            }
            Ok(Some(Err(error))) => tracing::debug!(%error, name, "a watch is being renewed"),
            Ok(None) => return,
            Err(_) if slot.receiver_count() <= 1 && last_used.elapsed() >= UNUSED_FOR => return,
            Err(_) => {}
        }
    }
}
