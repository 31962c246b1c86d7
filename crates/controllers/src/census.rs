//! The metadata of every object of every collectable kind, as news.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::core::{DynamicObject, PartialObjectMeta};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_runtime::{Change, Informer, Informers, Manager, Subscription, Watch};

use crate::kinds::{Kind, Kinds};

/// An object of which only the metadata is known.
pub(crate) type Meta = PartialObjectMeta<DynamicObject>;

/// How long a kind that cannot be listed may hold up the others.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

type Listener = Arc<dyn Fn(&Kind, &Change<Meta>) + Send + Sync>;

/// Tells `listener` of every change, of kinds that appear later, too. `complete` is true while all that existed at the
/// last change of kinds has been told.
pub(crate) fn follow(
    manager: &mut Manager,
    kinds: &Kinds,
    complete: watch::Sender<bool>,
    listener: impl Fn(&Kind, &Change<Meta>) + Send + Sync + 'static,
) {
    let follower = Follower {
        informers: manager.handle().informers,
        listener: Arc::new(listener),
        followed: HashMap::new(),
        complete,
    };
    let kinds = kinds.clone();
    manager.add_task(move |stop| follower.run(kinds, stop));
}

struct Follower {
    informers: Informers,
    listener: Listener,
    followed: HashMap<Kind, (Informer<Meta>, Subscription)>,
    complete: watch::Sender<bool>,
}

impl Follower {
    async fn run(mut self, mut kinds: Kinds, stop: CancellationToken) {
        loop {
            let list = kinds.now();
            if !list.is_empty() {
                let wanted: Vec<Kind> = list.iter().filter(|kind| kind.is_collectable()).cloned().collect();
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.adjust(&wanted) => {}
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                more = kinds.changed() => if !more { return },
            }
        }
    }

    async fn adjust(&mut self, wanted: &[Kind]) {
        let gone: Vec<Kind> = self.followed.keys().filter(|kind| !wanted.contains(kind)).cloned().collect();
        for kind in gone {
            let Some((informer, _subscription)) = self.followed.remove(&kind) else { continue };
            // A kind that is no longer served has no objects any more.
            for object in informer.all() {
                (self.listener)(&kind, &Change { old: Some(object), new: None, listed: true });
            }
        }
        for kind in wanted {
            if self.followed.contains_key(kind) {
                continue;
            }
            self.complete.send_replace(false);
            let informer = self.informers.get(Watch::<Meta>::of(kind.resource.clone()));
            let (listener, of_kind) = (self.listener.clone(), kind.clone());
            let subscription = informer.subscribe(move |change| listener(&of_kind, change));
            self.followed.insert(kind.clone(), (informer, subscription));
        }
        for (kind, (informer, _)) in &self.followed {
            if tokio::time::timeout(SYNC_TIMEOUT, informer.synced()).await.is_err() {
                tracing::warn!(kind = %kind.resource.kind, "Objects cannot be listed; going on without them");
            }
        }
        self.complete.send_replace(true);
    }
}
