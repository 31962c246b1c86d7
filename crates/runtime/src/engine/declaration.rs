//! What an operator declares: the kinds it owns and reads. Watches, caches and permissions follow from it.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use http::Request;
use hyper::body::Bytes;
use k8s_openapi::api::apps::v1::{ControllerRevision, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::core::{ApiResource, PartialObjectMeta};
use serde::Serialize;
use windlass_core::admission::Window;
use windlass_core::{Operator, Upgrades, World};

use super::declared::{Declared, Use};
use super::kinds::{Family, Nursery, Owned};
use super::style::{Outfit, Style};
use super::title::ReleasesFn;
use super::upgrade::{SkillOf, skill_of};
use super::{Cleanup, CleanupFn, call_cleanup};
use crate::cache::Change;
use crate::controller::{ByObject, Controller};
use crate::informer::Informer;
use crate::key::ObjectKey;
use crate::manager::Manager;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::owners::is_cluster_scoped;
use crate::reconcile::Handle;
use crate::watch::Watch;

/// How many resources are worked on at the same time, unless said otherwise. Workers wait for answers most of the time: with
/// few of them, an API server that is slow for a moment holds up all that changes meanwhile.
const WORKERS: usize = 10;

/// An operator, its kinds and its options.
pub struct Declaration<O: Style> {
    operator: Arc<O>,
    kinds: Vec<Kind<O>>,
    pods: bool,
    cleanup: Option<CleanupFn<O>>,
    ordered: bool,
    releases: Option<ReleasesFn<O>>,
    upgrades: Option<SkillOf<O>>,
    workers: Option<usize>,
    resync: Option<Duration>,
    sources: Vec<SourceOf<O>>,
    window: Option<Window>,
}

/// Adds a source to the controller.
type SourceOf<O> = Box<dyn Fn(EngineController<O>) -> EngineController<O> + Send + Sync>;

struct Kind<O: Style> {
    declared: Declared,
    watch: Wire<O>,
}

type Wire<O> = Box<dyn Fn(&mut Wiring<'_, O>) + Send + Sync>;

type EngineController<O> = Controller<ByObject<<O as Style>::Engine>>;
type Route<O> = Box<dyn FnOnce(EngineController<O>, &Family) -> EngineController<O>>;

/// The caches of an operator while they are put together.
struct Wiring<'a, O: Style> {
    cluster: &'a Handle,
    namespaces: Namespaces,
    world: World,
    nursery: Nursery,
    family: Family,
    routes: Vec<Route<O>>,
}

impl<O: Style> Declaration<O> {
    /// An operator that makes nothing yet.
    pub fn new(operator: O) -> Self {
        Self {
            operator: Arc::new(operator),
            kinds: Vec::new(),
            pods: false,
            cleanup: None,
            ordered: false,
            releases: None,
            upgrades: None,
            workers: None,
            resync: None,
            sources: Vec::new(),
            window: None,
        }
    }

    /// The operator makes objects of kind `K`.
    #[must_use]
    pub fn owns<K: Object<DynamicType = ()> + Serialize>(mut self) -> Self {
        self.kinds.push(Kind {
            declared: Declared::of::<K>(Use::Owns),
            watch: Box::new(|wiring| {
                let informer = wiring.watch_family(wiring.watch::<K>().compact());
                wiring.nursery.add(Arc::new(Owned::new(informer)));
            }),
        });
        self
    }

    /// The operator looks at objects of kind `K`, and is asked again when one below a resource changes.
    #[must_use]
    pub fn reads<K: Object<DynamicType = ()>>(mut self) -> Self {
        self.kinds.push(reads::<O, K>());
        self
    }

    /// The operator looks at objects of kind `K`; `map` says which resources a change concerns.
    #[must_use]
    pub fn watches<K: Object<DynamicType = ()>>(
        mut self,
        map: impl Fn(&Change<K>) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self {
        let watch = move |wiring: &mut Wiring<'_, O>| {
            let informer = wiring.cluster.informers.get(wiring.watch::<K>());
            wiring.world = std::mem::take(&mut wiring.world).with_view(Arc::new(informer.clone()));
            let map = map.clone();
            wiring.routes.push(Box::new(move |controller, _| controller.on(&informer, map)));
        };
        self.kinds.push(Kind { declared: Declared::of::<K>(Use::Reads), watch: Box::new(watch) });
        self
    }

    /// The operator looks at the objects of kind `K` that `names` finds in a resource, of its own namespace where the kind
    /// has namespaces, and is asked again when one of them comes, changes or goes.
    #[must_use]
    pub fn refers_to<K: Object<DynamicType = ()>>(
        mut self,
        names: impl Fn(&O::Resource) -> Vec<String> + Clone + Send + Sync + 'static,
    ) -> Self {
        let watch = move |wiring: &mut Wiring<'_, O>| {
            let informer = wiring.cluster.informers.get(wiring.watch::<K>());
            wiring.world = std::mem::take(&mut wiring.world).with_view(Arc::new(informer.clone()));
            let names = names.clone();
            let resources = wiring.cluster.informers.get(wiring.watch::<O::Resource>().compact());
            let index = resources.index(move |resource| {
                let namespace = resource.meta().namespace.clone().filter(|_| !is_cluster_scoped::<K>());
                let key = |name| ObjectKey { namespace: namespace.clone(), name }.to_string();
                names(resource).into_iter().map(key).collect()
            });
            wiring.routes.push(Box::new(move |controller, _| {
                controller.on(&informer, move |change| {
                    let referrers = index.get(&change.key().to_string());
                    referrers.iter().map(|resource| ObjectKey::of(&**resource)).collect::<Vec<_>>()
                })
            }));
        };
        self.kinds.push(Kind { declared: Declared::of::<K>(Use::Reads), watch: Box::new(watch) });
        self
    }

    /// The operator looks at the Pods of the workloads it owns: see [`World::pods_of`].
    #[must_use]
    pub fn pods(mut self) -> Self {
        self.pods = true;
        self
    }

    /// How many resources are worked on at the same time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Looks at every resource again after about this time, even if nothing changes.
    #[must_use]
    pub fn resync(mut self, interval: Duration) -> Self {
        self.resync = Some(interval);
        self
    }

    /// Asks the operator again about each resource whose key comes out of the stream that `events` makes.
    #[must_use]
    pub fn stream<S: Stream<Item = ObjectKey> + Send + 'static>(
        mut self,
        name: impl Into<String>,
        events: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        let name = name.into();
        self.sources.push(Box::new(move |controller| controller.stream(name.clone(), events())));
        self
    }

    /// Asks the operator again, every `interval`, about the resources that `keys` finds.
    #[must_use]
    pub fn every<I: IntoIterator<Item = ObjectKey>>(
        mut self,
        interval: Duration,
        keys: impl Fn() -> I + Clone + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(Box::new(move |controller| controller.every(interval, keys.clone())));
        self
    }

    /// Asks the operator again about the resources that a request to `path` concerns.
    #[must_use]
    pub fn endpoint(
        mut self,
        path: impl Into<String>,
        read: impl Fn(&Request<Bytes>) -> Result<Vec<ObjectKey>, String> + Clone + Send + Sync + 'static,
    ) -> Self {
        let path = path.into();
        self.sources.push(Box::new(move |controller| controller.endpoint(path.clone(), read.clone())));
        self
    }

    /// How functions of admission see what the operator sees, and the resources themselves.
    pub fn window(&mut self) -> Window {
        self.window.get_or_insert_default().clone()
    }

    /// The kinds that the operator uses, besides its own.
    pub fn declared(&self) -> Vec<Declared> {
        let all = self.kinds.iter().map(|kind| kind.declared.clone());
        all.chain(self.pod_kinds().into_iter().map(|kind| kind.declared)).collect()
    }

    /// The kind itself.
    pub fn resource(&self) -> ApiResource {
        ApiResource::erase::<O::Resource>(&())
    }

    /// Whether resources live in namespaces.
    pub fn is_namespaced(&self) -> bool {
        !is_cluster_scoped::<O::Resource>()
    }

    /// Whether resources are upgraded, and say so in their status.
    pub fn has_upgrades(&self) -> bool {
        self.upgrades.is_some()
    }

    /// Whether the metadata of resources is written: a finalizer, or what is remembered there.
    pub fn patches_resources(&self) -> bool {
        self.cleanup.is_some() || self.ordered || self.releases.is_some() || self.operator.patches_resources()
    }

    /// The operator itself, while nothing runs it yet.
    ///
    /// # Panics
    /// If it is at work already.
    pub fn operator_mut(&mut self) -> &mut O {
        Arc::get_mut(&mut self.operator).expect("an operator is declared before it is put to work")
    }

    /// Puts the operator to work in a cluster of `manager`.
    pub fn install(&self, manager: &mut Manager, cluster: &Handle, namespaces: Namespaces) {
        let mut wiring = Wiring {
            cluster,
            namespaces,
            world: World::new(),
            nursery: Nursery::default(),
            family: Family::default(),
            routes: Vec::new(),
        };
        for kind in self.kinds.iter().chain(&self.pod_kinds()) {
            (kind.watch)(&mut wiring);
        }
        let watch = wiring.watch::<O::Resource>().compact();
        // Webhooks are asked by the manager's own cluster.
        if let Some(window) = self.window.as_ref().filter(|_| cluster.cluster.is_none()) {
            let resources = cluster.informers.get(watch.clone());
            let (world, clock) = (wiring.world.clone().with_view(Arc::new(resources)).strict(), cluster.clock.clone());
            window.open(move || world.clone().at(clock.now()));
        }
        let Wiring { world, nursery, family, routes, .. } = wiring;
        let name = cluster.name_of(&self.resource().kind.to_lowercase());
        let (cleanup, ordered, releases, upgrades) = (self.cleanup, self.ordered, self.releases, self.upgrades);
        if upgrades.is_some() {
            cluster.metrics.upgrades().begin(&self.resource().kind);
        }
        let outfit = Outfit { world: world.strict(), nursery, name, cleanup, ordered, releases, upgrades };
        let engine = self.operator.clone().engine(outfit);
        let mut controller = Controller::in_cluster(cluster, watch, engine);
        if self.operator.is_lenient() {
            controller = controller.lenient();
        }
        for route in routes {
            controller = route(controller, &family);
        }
        for source in &self.sources {
            controller = source(controller);
        }
        if let Some(interval) = self.resync {
            controller = controller.resync(interval);
        }
        controller = controller.workers(self.workers.unwrap_or(WORKERS));
        if let Some(deadline) = self.operator.deadline() {
            controller = controller.deadline(deadline);
        }
        manager.add(controller);
    }

    /// What finding Pods takes: those of a Deployment belong to a ReplicaSet, of which only the owner matters.
    fn pod_kinds(&self) -> Vec<Kind<O>> {
        if !self.pods {
            return Vec::new();
        }
        let is = |kind: &Kind<O>, name: &str| kind.declared.resource.kind == name;
        let owns_deployments = self.kinds.iter().any(|kind| is(kind, "Deployment"));
        let knows_replica_sets = self.kinds.iter().any(|kind| is(kind, "ReplicaSet"));
        let mut kinds = Vec::new();
        if owns_deployments && !knows_replica_sets {
            kinds.push(reads::<O, PartialObjectMeta<ReplicaSet>>());
        }
        if !self.kinds.iter().any(|kind| is(kind, "Pod")) {
            kinds.push(reads::<O, Pod>());
        }
        kinds
    }
}

impl<O: Operator> Declaration<O> {
    /// The parts of a resource have an order: see [`Part`](windlass_core::Part).
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// What a resource is made of stays when it is deleted, if `is_released` says so of it.
    #[must_use]
    pub fn releases(mut self, is_released: fn(&<O as Operator>::Resource) -> bool) -> Self {
        self.releases = Some(is_released);
        self
    }
}

impl<O: Upgrades> Declaration<O> {
    /// Resources are upgraded, and go back by themselves to what was last known to be good.
    #[must_use]
    pub fn upgrades(mut self) -> Self {
        self.upgrades = Some(skill_of::<O>);
        self.owns::<ControllerRevision>()
    }
}

impl<O: Cleanup> Declaration<O> {
    /// The operator has something to do before a resource may go.
    #[must_use]
    pub fn cleanup(mut self) -> Self {
        self.cleanup = Some(call_cleanup::<O>);
        self
    }
}

impl<O: Style> Wiring<'_, O> {
    /// Watches a kind whose objects are below resources.
    fn watch_family<K: Object<DynamicType = ()>>(&mut self, watch: Watch<K>) -> Informer<K> {
        let informer = self.cluster.informers.get(watch);
        self.world = std::mem::take(&mut self.world).with_view(Arc::new(informer.clone()));
        self.family.add(Arc::new(informer.clone()));
        let watched = informer.clone();
        self.routes.push(Box::new(move |controller, family| {
            let family = family.clone();
            controller.on(&watched, move |change| family.heads::<O::Resource, K>(change))
        }));
        informer
    }

    /// The objects of a kind where the operator works.
    fn watch<K: Object<DynamicType = ()>>(&self) -> Watch<K> {
        if is_cluster_scoped::<K>() { Watch::all() } else { Watch::all().within(self.namespaces.clone()) }
    }
}

fn reads<O: Style, K: Object<DynamicType = ()>>() -> Kind<O> {
    Kind {
        declared: Declared::of::<K>(Use::Reads),
        watch: Box::new(|wiring| drop(wiring.watch_family(wiring.watch::<K>()))),
    }
}
