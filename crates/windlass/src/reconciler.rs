//! A [`Reconcile`] as a program.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::core::ApiResource;
use serde::Serialize;
use windlass_core::admission::Hook;
use windlass_core::{Chain, CustomResource, Versions};
use windlass_runtime::engine::{Declared, Use};
use windlass_runtime::webhook::Registration;
use windlass_runtime::{
    ByObject, Change, Controller, Handle, Manager, Namespaces, Object, ObjectKey, Reconcile, Switched, Watch, owners,
};

use crate::app::Program;
use crate::rbac::{self, Basis, Need, Scope};

/// Makes a program of a [`Reconcile`] of a kind of one's own: declare its kinds, then call [`ReconcileApp::main`].
pub fn reconcile<R: Reconcile<Resource: CustomResource>>(reconcile: R) -> ReconcileApp<R> {
    let chains = vec![Chain::only::<R::Resource>()];
    ReconcileApp { chains, conditions: Some(Switched::with_conditions), ..ReconcileApp::new(reconcile) }
}

/// Makes a program of a [`Reconcile`] of a kind that somebody else defines.
pub fn controller<R: Reconcile<Resource: Object<DynamicType = ()>>>(reconcile: R) -> ReconcileApp<R> {
    ReconcileApp::new(reconcile)
}

/// The controller of a program.
type Switchable<R> = Controller<ByObject<Switched<R>>>;
/// Where a controller is to work.
type Place<'a> = (&'a Handle, &'a Namespaces);
/// A step of putting something together.
type Step<T> = Box<dyn Fn(T, Place<'_>) -> T + Send + Sync>;

struct Kind<R: Reconcile<Resource: Object<DynamicType = ()>>> {
    declared: Declared,
    /// Lets the switches know of the kind.
    switch: Step<Switched<R>>,
    /// Lets changes of the kind wake objects.
    wake: Step<Switchable<R>>,
}

type Extension = Box<dyn Fn(&mut Manager, &Handle, &Namespaces) + Send + Sync>;

/// A [`Reconcile`] with its declared kinds. Its objects have the switches of every operator.
#[must_use = "call .main()"]
pub struct ReconcileApp<R: Reconcile<Resource: Object<DynamicType = ()>>> {
    name: String,
    reconcile: Arc<R>,
    kinds: Vec<Kind<R>>,
    chains: Vec<Chain>,
    /// Where switches are told of in conditions.
    conditions: Option<fn(Switched<R>) -> Switched<R>>,
    hooks: Vec<Hook>,
    extensions: Vec<Extension>,
    needs: Vec<Need>,
    version: Option<String>,
    workers: Option<usize>,
    resync: Option<Duration>,
}

impl<R: Reconcile<Resource: Object<DynamicType = ()>>> ReconcileApp<R> {
    fn new(reconcile: R) -> Self {
        Self {
            name: format!("{}-operator", R::Resource::kind(&()).to_lowercase()),
            reconcile: Arc::new(reconcile),
            kinds: Vec::new(),
            chains: Vec::new(),
            conditions: None,
            hooks: Vec::new(),
            extensions: Vec::new(),
            needs: Vec::new(),
            version: None,
            workers: None,
            resync: None,
        }
    }

    /// Another name than the kind with `-operator`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// It makes objects of kind `K`; a change of one wakes the object that owns it.
    pub fn owns<K: Object<DynamicType = ()> + Serialize>(mut self) -> Self {
        self.kinds.push(Kind {
            declared: Declared::of::<K>(Use::Owns),
            switch: Box::new(|switched, (cluster, namespaces)| {
                switched.restarts(cluster.informers.get(watch::<K>(namespaces)))
            }),
            wake: Box::new(|controller, (cluster, namespaces)| {
                controller.owns(&cluster.informers.get(watch::<K>(namespaces)))
            }),
        });
        self
    }

    /// It looks at objects of kind `K`; `map` says which objects a change concerns.
    pub fn watches<K: Object<DynamicType = ()>>(
        mut self,
        map: impl Fn(&Change<K>) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.kinds.push(Kind {
            declared: Declared::of::<K>(Use::Reads),
            switch: Box::new(|switched, _| switched),
            wake: Box::new(move |controller, (cluster, namespaces)| {
                controller.on(&cluster.informers.get(watch::<K>(namespaces)), map.clone())
            }),
        });
        self
    }

    /// It looks at every object again after about `interval`, even if nothing changes.
    pub fn resync(mut self, interval: Duration) -> Self {
        self.resync = Some(interval);
        self
    }

    /// How many objects are worked on at the same time.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// The kind has several versions: clients may use each, and this one is one of them.
    ///
    /// # Panics
    /// If it is none of them.
    pub fn versions<Newest: CustomResource>(mut self, versions: &Versions<Newest>) -> Self
    where
        R::Resource: CustomResource,
    {
        let own = R::Resource::facts();
        let is_of = versions.chain().is_of(own.kind, &format!("{}/{}", own.group, own.version));
        assert!(is_of, "{} {} is none of the versions", own.kind, own.version);
        self.chains = vec![versions.chain().clone()];
        self
    }

    /// A webhook: see [`Hook`]. There is one of each sort for a kind.
    ///
    /// # Panics
    /// If there is one of this sort for the kind already.
    pub fn webhook(mut self, hook: Hook) -> Self {
        assert!(self.hooks.iter().all(|known| known.path() != hook.path()), "there are two webhooks {}", hook.path());
        self.hooks.push(hook);
        self
    }

    /// Adds further controllers to the same manager.
    pub fn with(mut self, extend: impl Fn(&mut Manager, &Handle, &Namespaces) + Send + Sync + 'static) -> Self {
        self.extensions.push(Box::new(extend));
        self
    }

    /// It must be allowed these `verbs` on a `resource` (its plural), beyond what follows from its kinds, where it serves
    /// objects.
    ///
    /// # Panics
    /// If one of them is `*`: what an operator may do is said in full.
    pub fn allow(mut self, group: &str, resource: &str, verbs: &[&str]) -> Self {
        self.needs.extend(rbac::asked(group, resource, verbs, Scope::Served));
        self
    }

    /// The program's version, which charts and bundles carry: usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The `main` of the program.
    pub fn main(self) -> ExitCode {
        self.run_blocking(std::env::args_os().collect())
    }
}

impl<R: Reconcile<Resource: Object<DynamicType = ()>>> Program for ReconcileApp<R> {
    fn as_program(&self) -> &dyn Program {
        self
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn registration(&self, mut namespaces: Vec<String>) -> Registration {
        if owners::is_cluster_scoped::<R::Resource>() {
            namespaces.clear();
        }
        let (name, hooks, chains) = (self.name.clone(), self.hooks.clone(), self.chains.clone());
        Registration { name, hooks, chains, namespaces }
    }

    fn kinds(&self) -> Vec<Declared> {
        self.kinds.iter().map(|kind| kind.declared.clone()).collect()
    }

    fn needs(&self) -> Vec<Need> {
        let mut patches: Vec<_> = self.conditions.map(|_| rbac::REPORTS).into_iter().collect();
        if self.chains.iter().any(Chain::converts) {
            patches.push(rbac::MOVES);
        }
        let basis = Basis {
            own: ApiResource::erase::<R::Resource>(&()),
            is_namespaced: !owners::is_cluster_scoped::<R::Resource>(),
            patches,
            declared: self.kinds(),
        };
        let mut needs = rbac::declared(&basis);
        needs.extend(self.needs.iter().cloned());
        needs
    }

    fn install_in(&self, manager: &mut Manager, cluster: &Handle, namespaces: Namespaces) {
        for extend in &self.extensions {
            extend(manager, cluster, &namespaces);
        }
        let place = (cluster, &namespaces);
        let kind = R::Resource::kind(&()).to_lowercase();
        let name = cluster.cluster.as_ref().map_or(kind.clone(), |cluster| format!("{kind}@{cluster}"));
        let mut switched = Switched::new(name, self.reconcile.clone());
        if let Some(with_conditions) = self.conditions {
            switched = with_conditions(switched);
        }
        let switched = self.kinds.iter().fold(switched, |switched, kind| (kind.switch)(switched, place));
        let controller = Controller::in_cluster(cluster, watch(&namespaces), switched);
        let mut controller = self.kinds.iter().fold(controller, |controller, kind| (kind.wake)(controller, place));
        if let Some(interval) = self.resync {
            controller = controller.resync(interval);
        }
        if let Some(workers) = self.workers {
            controller = controller.workers(workers);
        }
        manager.add(controller);
    }
}

/// The objects of a kind where the program works.
fn watch<K: Object<DynamicType = ()>>(namespaces: &Namespaces) -> Watch<K> {
    if owners::is_cluster_scoped::<K>() { Watch::all() } else { Watch::all().within(namespaces.clone()) }
}
