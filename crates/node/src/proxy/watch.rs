//! Follows Services and endpoints and keeps a listener for each address.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::forward;
use super::routes::{Key, Route, World, key};
use crate::context::Context;
use crate::low_port;

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
    open: HashMap<SocketAddrV4, Open>,
    /// Addresses that could not be had, by the Service that wanted them: reported once.
    refused: HashMap<SocketAddrV4, Key>,
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
        let routes = world.routes(context.config.api_host);
        self.open.retain(|address, _| routes.contains_key(address));
        self.refused.retain(|address, service| routes.get(address).is_some_and(|route| route.service == *service));
        for (address, route) in routes {
            if let Some(open) = self.open.get(&address) {
                open.route.send_if_modified(|now| {
                    let changed = **now != route;
                    *now = Arc::new(route);
                    changed
                });
            } else if !self.refused.contains_key(&address) {
                self.listen(context, world, address, route).await;
            }
        }
    }

    async fn listen(&mut self, context: &Context, world: &World, address: SocketAddrV4, route: Route) {
        let service = route.service.clone();
        match bind(context, world, address, &service).await {
            Ok(listener) => {
                let (route, receiver) = watch::channel(Arc::new(route));
                let task = tokio::spawn(forward::serve(listener, receiver, context.leaving.clone())).abort_handle();
                self.open.insert(address, Open { route, task });
            }
            // The API server itself listens there.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && route.backends.contains(&address.into()) => {}
            Err(error) => {
                if let Some(object) = world.services.get(&service) {
                    context.events.warning(object, None, "ListenFailed", explain(address, &error));
                }
                self.refused.insert(address, service);
            }
        }
    }
}

/// Listens on an address; where its port needs a privilege, on the port that stands in for it.
async fn bind(context: &Context, world: &World, address: SocketAddrV4, service: &Key) -> io::Result<TcpListener> {
    let (denied, port) = match (TcpListener::bind(address).await, low_port::stand_in(address.port())) {
        (Err(error), Some(port)) if error.kind() == io::ErrorKind::PermissionDenied => (error, port),
        (result, _) => return result,
    };
    let other = SocketAddrV4::new(*address.ip(), port);
    let listener = TcpListener::bind(other).await.map_err(|_| denied)?;
    if let Some(object) = world.services.get(service) {
        let message = format!(
            "{address} is served at {other}: ports below 1024 need a privilege. Pods reach it at both; for programs \
             outside of Pods allow it with `sysctl net.ipv4.ip_unprivileged_port_start={}` as root",
            address.port()
        );
        context.events.normal(object, None, "PortStandIn", message);
    }
    Ok(listener)
}

fn explain(address: SocketAddrV4, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{address} cannot be served: ports below 1024 need a privilege. Use a higher port, or allow it for everyone with \
             `sysctl net.ipv4.ip_unprivileged_port_start={port}` as root"
        ),
        io::ErrorKind::AddrInUse => format!(
            "{address} cannot be served: another program listens on port {port} (`ss -ltnp 'sport = :{port}'` shows it)"
        ),
        _ => format!("{address} cannot be served: {error}"),
    }
}
