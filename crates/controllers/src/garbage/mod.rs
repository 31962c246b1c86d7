//! Garbage collection: objects go when their last owner has gone.

mod act;
mod graph;
mod judge;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use kube::Resource;
use tokio::sync::watch;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Manager, Priority, Process, Queue};

use crate::actor::Actor;
use crate::census::{self, Meta};
use crate::kinds::{Kind, Kinds};
use graph::{Deletion, Graph, Node, Place, Uid};

/// Adds the collector to the manager.
pub(crate) fn add(manager: &mut Manager, kinds: &Kinds) {
    let shared = Arc::new(Shared::default());
    let (complete, completed) = watch::channel(false);
    let actor = Actor::new(manager, NAME);
    let collector = Collector { actor, kinds: kinds.clone(), shared: shared.clone(), complete: completed };
    let controller = Controller::keyed(manager, NAME, collector).workers(WORKERS);
    shared.queue.set(controller.queue()).expect("set only here");
    manager.add(controller);
    let observer = shared.clone();
    census::follow(manager, kinds, complete, move |kind, change| observer.observe(kind, change));
    let mut kinds = kinds.clone();
    manager.add_task(move |stop| async move {
        // What waits for a kind to appear is looked at when kinds change.
        let unpark = async {
            while kinds.changed().await {
                shared.unpark();
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = unpark => {}
        }
    });
}

const NAME: &str = "garbage-collector";

/// How many objects are looked at at the same time.
const WORKERS: usize = 8;

/// What watches and workers share.
#[derive(Default)]
struct Shared {
    graph: Mutex<Graph>,
    /// Objects with an owner of a kind that is not served.
    parked: Mutex<HashSet<Uid>>,
    /// The queue of the controller, which is made after its process.
    queue: OnceLock<Queue<Uid>>,
}

impl Shared {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().expect("no code that can panic runs under this lock")
    }

    fn observe(&self, kind: &Kind, change: &Change<Meta>) {
        let meta = change.object().meta();
        let Some(uid) = &meta.uid else { return };
        let look = match &change.new {
            None => self.graph().forget(uid),
            Some(_) => {
                let mut look = vec![];
                // The same name, another object: the one before is gone.
                let before = change.old.as_ref().and_then(|old| old.meta().uid.clone()).filter(|old| old != uid);
                let mut graph = self.graph();
                look.extend(before.into_iter().flat_map(|before| graph.forget(&before)));
                look.extend(graph.observe(uid, node(kind, change)));
                look
            }
        };
        let priority = if change.listed { Priority::Low } else { Priority::Normal };
        look.into_iter().for_each(|uid| self.enqueue(uid, priority));
    }

    fn park(&self, uid: &str) {
        self.parked.lock().expect("no code that can panic runs under this lock").insert(uid.to_owned());
    }

    fn enqueue(&self, uid: Uid, priority: Priority) {
        self.queue.get().expect("set before anything runs").add(uid, priority);
    }

    fn unpark(&self) {
        let parked = std::mem::take(&mut *self.parked.lock().expect("no code that can panic runs under this lock"));
        parked.into_iter().for_each(|uid| self.enqueue(uid, Priority::Low));
    }
}

fn node(kind: &Kind, change: &Change<Meta>) -> Node {
    let meta = change.object().meta();
    Node {
        place: Place {
            group: kind.resource.group.clone(),
            kind: kind.resource.kind.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
        },
        owners: meta.owner_references.clone().unwrap_or_default(),
        deletion: Deletion::of(meta),
    }
}

struct Collector {
    actor: Actor,
    kinds: Kinds,
    shared: Arc<Shared>,
    complete: watch::Receiver<bool>,
}

impl Process for Collector {
    type Key = Uid;

    async fn process(&self, uid: &Uid, _: &Attempt) -> Result<Action, Error> {
        // An incomplete graph would take "not seen yet" for "has no dependents".
        if self.complete.clone().wait_for(|complete| *complete).await.is_err() {
            return Ok(Action::Await);
        }
        self.look_at(uid).await
    }
}
