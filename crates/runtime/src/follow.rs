//! Watches on behalf of single objects: begun by a reconcile, ended when it no longer asks for them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::informer::{Informer, Informers, Subscription};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::queue::Queue;
use crate::watch::{Watch, WatchKey};

/// The watches of the objects of one controller; clones are the same.
#[derive(Clone)]
pub(crate) struct Follows {
    queue: Queue<ObjectKey>,
    by_object: Arc<Mutex<HashMap<ObjectKey, HashMap<WatchKey, Subscription>>>>,
}

/// What one run asks to follow.
pub(crate) struct Wishes {
    follows: Follows,
    object: ObjectKey,
    asked: Mutex<HashSet<WatchKey>>,
}

impl Follows {
    pub(crate) fn new(queue: Queue<ObjectKey>) -> Self {
        Self { queue, by_object: Arc::default() }
    }

    pub(crate) fn wishes(&self, object: ObjectKey) -> Wishes {
        Wishes { follows: self.clone(), object, asked: Mutex::default() }
    }

    /// The object is gone, and with it what was watched for it.
    pub(crate) fn forget(&self, object: &ObjectKey) {
        drop(self.lock().remove(object));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashMap<WatchKey, Subscription>>> {
        self.by_object.lock().expect("no code that can panic runs under this lock")
    }
}

impl Wishes {
    pub(crate) fn follow<C: Object>(&self, informers: &Informers, watch: Watch<C>) -> Informer<C> {
        let key = watch.key();
        let informer = informers.get(watch);
        self.asked.lock().expect("no code that can panic runs under this lock").insert(key.clone());
        let is_followed = self.follows.lock().get(&self.object).is_some_and(|watches| watches.contains_key(&key));
        if !is_followed {
            // Not under the lock: the subscription is told of all objects before this returns.
            let object = self.object.clone();
            let subscription = self.follows.queue.follow(&informer, move |_| [object.clone()]);
            self.follows.lock().entry(self.object.clone()).or_default().insert(key, subscription);
        }
        informer
    }

    /// The queue that the object stands in.
    pub(crate) fn queue(&self) -> Queue<ObjectKey> {
        self.follows.queue.clone()
    }

    /// The run was complete: what it did not ask for is followed no longer.
    pub(crate) fn settle(self) {
        let asked = self.asked.into_inner().expect("no code that can panic runs under this lock");
        let mut all = self.follows.lock();
        let Some(watches) = all.get_mut(&self.object) else { return };
        let (kept, ended): (HashMap<_, _>, HashMap<_, _>) =
            std::mem::take(watches).into_iter().partition(|(key, _)| asked.contains(key));
        *watches = kept;
        if watches.is_empty() {
            all.remove(&self.object);
        }
        drop(all);
        drop(ended);
    }
}
