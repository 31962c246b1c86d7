//! What feeds a controller besides watches: the world outside of the cluster, and time.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use http::Request;
use hyper::body::Bytes;

use super::Controller;
use crate::informer::Informer;
use crate::journal::Trigger;
use crate::key::ObjectKey;
use crate::object::Object;
use crate::queue::{Key, Priority, Queue};
use crate::reconcile::{Handle, Process};

/// Runs while the controller does.
pub(super) type Feeder<Q> = Box<dyn FnOnce(Queue<Q>, Handle) -> BoxFuture<'static, ()> + Send>;

impl<P: Process> Controller<P> {
    /// Puts every key that comes out of `events` into the queue. It is polled only while this replica works; when it ends
    /// or panics, readiness names it, so it should begin anew by itself when a connection breaks.
    #[must_use]
    pub fn stream(mut self, name: impl Into<String>, events: impl Stream<Item = P::Key> + Send + 'static) -> Self {
        let name = name.into();
        self.workshop.feeders.push(Box::new(move |queue, handle| Box::pin(drain(name, events, queue, handle))));
        self
    }

    /// Puts the keys that `keys` finds into the queue now and after every `interval`, give or take a tenth.
    #[must_use]
    pub fn every<I: IntoIterator<Item = P::Key>>(
        mut self,
        interval: Duration,
        keys: impl Fn() -> I + Send + 'static,
    ) -> Self {
        // Gathered at once: what an author's iterator holds must not be held over the wait.
        let due = move || keys().into_iter().collect();
        self.workshop.feeders.push(Box::new(move |queue, handle| Box::pin(repeat(interval, due, queue, handle))));
        self
    }

    /// Answers at `path` of the manager's port for events: `read` says which keys a request concerns, or why it is refused.
    /// It is open only while this replica works.
    #[must_use]
    pub fn endpoint(
        mut self,
        path: impl Into<String>,
        read: impl Fn(&Request<Bytes>) -> Result<Vec<P::Key>, String> + Send + Sync + 'static,
    ) -> Self {
        let path = path.into();
        self.workshop.feeders.push(Box::new(move |queue, handle| Box::pin(listen(path, read, queue, handle))));
        self
    }
}

async fn drain<Q: Key>(name: String, events: impl Stream<Item = Q> + Send, queue: Queue<Q>, handle: Handle) {
    let check = handle.health.check(format!("source {name}"), "has not begun");
    check.well();
    let all = events.for_each(|key| {
        queue.add_for(key, Priority::Normal, || Trigger::Source { name: name.clone() });
        std::future::ready(())
    });
    let how = match AssertUnwindSafe(all).catch_unwind().await {
        Ok(()) => "has ended",
        Err(_) => "has panicked",
    };
    tracing::error!(source = %name, "An event source {how}");
    check.trouble(how);
    std::future::pending().await
}

async fn repeat<Q: Key>(interval: Duration, due: impl Fn() -> Vec<Q> + Send, queue: Queue<Q>, handle: Handle) {
    loop {
        for key in due() {
            queue.add_for(key, Priority::Normal, || Trigger::Interval);
        }
        handle.clock.sleep(interval.mul_f64(handle.clock.spread(0.9..1.1))).await;
    }
}

async fn listen<Q: Key>(
    path: String,
    read: impl Fn(&Request<Bytes>) -> Result<Vec<Q>, String> + Send + Sync + 'static,
    queue: Queue<Q>,
    handle: Handle,
) {
    let asked = path.clone();
    let take_in = move |request: &Request<Bytes>| {
        let keys = read(request)?;
        let count = keys.len();
        for key in keys {
            queue.add_for(key, Priority::Normal, || Trigger::Endpoint { path: asked.clone() });
        }
        Ok(count)
    };
    let _opened = handle.endpoints.open(&path, Arc::new(take_in));
    std::future::pending().await
}

/// Looks at all objects again after every `interval`, each at a moment of its own.
pub(super) async fn resync<K: Object>(
    informer: Informer<K>,
    interval: Duration,
    queue: Queue<ObjectKey>,
    handle: Handle,
) {
    loop {
        handle.clock.sleep(interval).await;
        for key in informer.keys() {
            queue.resync(key, interval.mul_f64(handle.clock.spread(0.0..1.0)));
        }
    }
}
