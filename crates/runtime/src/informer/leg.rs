//! The watches behind an informer: one for each namespace, or one for all, each with its own back-off.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Client;
use kube::runtime::watcher::{self, Event};
use tokio::task::{AbortHandle, JoinSet};

use super::feed::{self, Feed};
use super::{Surroundings, slim};
use crate::backoff::Backoff;
use crate::health::Check;
use crate::key::ObjectKey;
use crate::metrics::WatchMetrics;
use crate::namespaces::Namespaces;
use crate::object::{Delivery, Guarded, Object, Plain};
use crate::watch::Watch;
use windlass_clock::Clock;

/// A watch without an error for this long after a failure has recovered.
const RECOVERED_AFTER: Duration = Duration::from_secs(10);

/// What the watches of an informer share.
#[derive(Clone)]
pub(super) struct Watcher<K: Object> {
    pub(super) watch: Watch<K>,
    pub(super) feed: Arc<Feed<K>>,
    pub(super) client: Client,
    pub(super) surroundings: Surroundings,
}

impl<K: Object> Watcher<K> {
    /// Watches for ever, where it is wanted at the time.
    pub(super) async fn run(self) {
        let Some(mut namespaces) = self.watch.namespaces().changes() else {
            return self.leg(None).run().await;
        };
        // Legs end with this task.
        let mut tasks = JoinSet::new();
        let mut legs: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            let names = namespaces.borrow_and_update().clone();
            let left: Vec<_> = legs.keys().filter(|name| !names.contains(*name)).cloned().collect();
            for name in left {
                if let Some(leg) = legs.remove(&name) {
                    leg.abort();
                    ended(&mut tasks, &leg).await;
                }
                self.leave(&name);
            }
            for name in &names {
                if !legs.contains_key(name) {
                    legs.insert(name.clone(), tasks.spawn(self.leg(Some(name.clone())).run()));
                }
            }
            self.feed.progress.send_modify(|progress| progress.begun = true);
            if namespaces.changed().await.is_err() {
                return;
            }
        }
    }

    fn leave(&self, namespace: &str) {
        self.feed.progress.send_modify(|progress| drop(progress.legs.remove(&Some(namespace.to_owned()))));
        self.feed.change(|cache| cache.leave(namespace));
    }

    fn leg(&self, namespace: Option<String>) -> Leg<K> {
        let watch = match &namespace {
            Some(_) => self.watch.clone().within(Namespaces::all()).namespace(namespace.clone()),
            None => self.watch.clone(),
        };
        let surroundings = &self.surroundings;
        let title = match &surroundings.cluster {
            Some(cluster) => format!("{} of {cluster}", watch.title()),
            None => watch.title(),
        };
        let leg = Leg {
            watch,
            namespace,
            feed: self.feed.clone(),
            client: self.client.clone(),
            clock: surroundings.clock.clone(),
            check: surroundings.health.check(format!("watch {title}"), feed::NOT_LISTED),
            metrics: surroundings.metrics.watch(&title),
            title,
            field_manager: surroundings.field_manager.clone(),
        };
        leg.progress(|_| {});
        leg
    }
}

/// Waits until a task that was told to end has ended: what it did comes before what follows.
async fn ended(tasks: &mut JoinSet<()>, leg: &AbortHandle) {
    while !leg.is_finished() {
        if tasks.join_next().await.is_none() {
            return;
        }
    }
}

/// One watch.
struct Leg<K: Object> {
    watch: Watch<K>,
    namespace: Option<String>,
    feed: Arc<Feed<K>>,
    client: Client,
    clock: Clock,
    check: Check,
    metrics: WatchMetrics,
    title: String,
    field_manager: String,
}

impl<K: Object> Leg<K> {
    async fn run(self) {
        let client = self.client.clone();
        self.follow(watcher::watcher(self.watch.api::<Plain<K>>(client.clone()), self.watch.config())).await;
        tracing::warn!(watch = %self.title, "Some objects cannot be read; they are left out");
        self.follow(watcher::watcher(self.watch.api::<Guarded<K>>(client), self.watch.config())).await;
    }

    /// Takes in events until one cannot be read.
    async fn follow<D: Delivery<K>>(&self, events: impl Stream<Item = watcher::Result<Event<D>>> + Send) {
        let mut events = std::pin::pin!(events.map(|event| event.map(Some)));
        let mut failures = 0;
        loop {
            let event = tokio::select! {
                biased;
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
        let namespace = self.namespace.as_deref();
        match event.map(|event| self.open(event)) {
            Some(Ok(event)) => self.feed.change(|cache| cache.observe_in(namespace, event)),
            Some(Err(key)) => self.feed.change(|cache| cache.unreadable(&key)),
            None => {}
        }
        if is_listed || self.is_listed() {
            self.check.well();
            self.metrics.up.set(1);
        }
        if is_listed {
            self.progress(|leg| *leg = feed::Leg { listed: true, trouble: None });
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
        self.metrics.errors.inc();
        // A watch that ends now and then, or falls behind, is ordinary; one that does not come back is not.
        if failures > 1 || !self.is_listed() {
            let advice = advice(error);
            tracing::warn!(watch = %self.title, %error, "Cannot watch{advice}");
            let trouble = format!("{error}{advice}");
            self.check.trouble(trouble.clone());
            self.metrics.up.set(0);
            self.progress(|leg| leg.trouble = Some(trouble));
        } else {
            tracing::debug!(watch = %self.title, %error, "Watch interrupted");
        }
        let backoff = if code(error) == Some(404) { Backoff::MISSING_KIND } else { Backoff::WATCH };
        self.clock.sleep(backoff.jittered(failures, &self.clock)).await;
    }

    fn is_listed(&self) -> bool {
        self.feed.progress.borrow().legs.get(&self.namespace).is_some_and(|leg| leg.listed)
    }

    fn progress(&self, change: impl FnOnce(&mut feed::Leg)) {
        self.feed.progress.send_modify(|progress| {
            progress.begun |= self.namespace.is_none();
            change(progress.legs.entry(self.namespace.clone()).or_default());
        });
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
