//! Follows Services and endpoints and keeps a listener for each address.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::door::{self, Door};
use super::routes::{Front, Key, Route, World, key};
use super::{datagrams, forward};
use crate::context::Context;

/// Serves all Services until told to stop.
pub(crate) async fn run(context: Arc<Context>, stop: CancellationToken) {
    let client = context.config.client.clone();
    let services = watcher(Api::<Service>::all(client.clone()), watcher::Config::default()).default_backoff();
    let slices = watcher(Api::<EndpointSlice>::all(client), watcher::Config::default()).default_backoff();
    let (mut services, mut slices) = (std::pin::pin!(services), std::pin::pin!(slices));
    let mut world = World::default();
    let mut listeners = Listeners::default();
    loop {
        let changed = tokio::select! {
            Some(event) = services.next() => take(&mut world.services, event),
            Some(event) = slices.next() => take(&mut world.slices, event),
            () = stop.cancelled() => return,
        };
        if changed {
            context.directory.set(Arc::new(world.clone()));
            listeners.follow(&context, &world).await;
        }
    }
}

/// Takes in an event of a watch; true if something can have changed.
fn take<K: kube::Resource>(objects: &mut BTreeMap<Key, K>, event: Result<Event<K>, watcher::Error>) -> bool {
    match event {
        // A new listing: what is not in it will be missed at the next event at the latest, as nothing is kept.
        Ok(Event::Init) => objects.clear(),
        Ok(Event::InitApply(object)) => drop(objects.insert(key(&object), object)),
        Ok(Event::InitDone) => return true,
        Ok(Event::Apply(object)) => {
            objects.insert(key(&object), object);
            return true;
        }
        Ok(Event::Delete(object)) => {
            objects.remove(&key(&object));
            return true;
        }
        Err(error) => tracing::debug!(%error, "a watch is being renewed"),
    }
    false
}

/// One listener per address.
#[derive(Default)]
struct Listeners {
    open: HashMap<Front, Open>,
    /// Addresses that could not be had, by the Service that wanted them: reported once.
    refused: HashMap<Front, Key>,
}

struct Open {
    route: watch::Sender<Arc<Route>>,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listeners {
    async fn follow(&mut self, context: &Context, world: &World) {
        let routes = world.routes(context.config.address);
        self.open.retain(|front, _| routes.contains_key(front));
        self.refused.retain(|front, service| routes.get(front).is_some_and(|route| route.service == *service));
        for (front, route) in routes {
            if let Some(open) = self.open.get(&front) {
                open.route.send_if_modified(|now| {
                    let changed = **now != route;
                    *now = Arc::new(route);
                    changed
                });
            } else if !self.refused.contains_key(&front) {
                self.listen(context, world, front, route).await;
            }
        }
    }

    async fn listen(&mut self, context: &Context, world: &World, front: Front, route: Route) {
        let service = route.service.clone();
        let object = world.services.get(&service);
        match door::open(front).await {
            Ok((door, stand_in)) => {
                if let (Some(object), Some(other)) = (object, stand_in) {
                    context.events.normal(object, None, "PortStandIn", door::explain_stand_in(front.1, other));
                }
                let (route, receiver) = watch::channel(Arc::new(route));
                let (leaving, cuts) = (context.leaving.clone(), context.cuts.clone());
                let task = match door {
                    Door::Stream(listener) => tokio::spawn(forward::serve(listener, receiver, leaving, cuts)),
                    Door::Datagram(socket) => {
                        tokio::spawn(datagrams::serve(socket, *front.1.ip(), receiver, (leaving, cuts)))
                    }
                };
                self.open.insert(front, Open { route, task: task.abort_handle() });
            }
            // The API server itself listens there.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && route.backends.contains(&front.1.into()) => {}
            Err(error) => {
                if let Some(object) = object {
                    context.events.warning(object, None, "ListenFailed", door::explain(front, &error));
                }
                self.refused.insert(front, service);
            }
        }
    }
}
