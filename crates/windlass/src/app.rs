//! An operator as a program.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde_json::Value;
use windlass_core::admission::Hook;
use windlass_core::{Chain, CustomResource, Operator, Upgrades, Versions};
use windlass_runtime::engine::{Cleanup, Declaration, Declared, Style};
use windlass_runtime::webhook::Registration;
use windlass_runtime::{Bytes, Change, Handle, Manager, Namespaces, Object, ObjectKey, Stream, http};

use crate::capability::{Ability, Provided};
use crate::manifests::{self, ManifestOptions};
use crate::rbac::{Basis, Need, Scope};
use crate::{command, rbac};

/// Makes a program of an operator: declare its kinds, then call [`App::main`].
pub fn operator<O: Operator>(operator: O) -> App<O> {
    let name = format!("{}-operator", <O as Operator>::Resource::facts().singular);
    App::of(name, operator)
}

type Extension = Box<dyn Fn(&mut Manager, &Handle, &Namespaces) + Send + Sync>;

/// An operator with its declared kinds.
#[must_use = "call .main()"]
pub struct App<O: Style> {
    name: String,
    pub(crate) declaration: Declaration<O>,
    /// The kinds that it defines, with their versions.
    chains: Vec<Chain>,
    pub(crate) hooks: Vec<Hook>,
    extensions: Vec<Extension>,
    needs: Vec<Need>,
    version: Option<String>,
    commands: Vec<OwnCommand>,
    pub(crate) abilities: Vec<Provided>,
}

/// A command that a program has besides those of every operator.
#[derive(Clone, Copy, Debug)]
pub struct OwnCommand {
    /// The word.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Does it; the arguments begin with the word.
    pub run: fn(Vec<OsString>) -> ExitCode,
}

/// An operator of any type: what a program that holds several needs to know of each.
pub trait Program: Send + Sync {
    /// Itself, whatever its type.
    fn as_program(&self) -> &dyn Program;
    /// The operator's name: of its field manager, Deployment and service account.
    fn name(&self) -> &str;
    /// The operator's version, if it says one.
    fn version(&self) -> Option<&str>;
    /// The definitions of its kinds.
    fn crds(&self) -> Vec<CustomResourceDefinition> {
        manifests::definitions(self.as_program())
    }
    /// What the API server must know of its webhooks and versions, for resources of one namespace or of all.
    fn registration(&self, namespaces: Vec<String>) -> Registration;
    /// The commands that it has besides those of every operator.
    fn commands(&self) -> Vec<OwnCommand> {
        Vec::new()
    }
    /// What it is able to do for what it keeps: see [`Ability`](crate::Ability).
    fn abilities(&self) -> Vec<Provided> {
        Vec::new()
    }
    /// The kinds that it uses, besides its own.
    fn kinds(&self) -> Vec<Declared>;
    /// What it must be allowed to do its work, and no more, each right with its reason.
    fn needs(&self) -> Vec<Need>;
    /// The same as rules.
    fn rules(&self) -> Vec<PolicyRule> {
        rbac::rules(&self.needs())
    }
    /// The roles and bindings that give it all that it needs, to lead and to serve webhooks included.
    fn roles(&self, options: &ManifestOptions) -> Vec<Value> {
        manifests::permissions(self.as_program(), options)
    }
    /// All that a cluster needs to run it, in the order in which to apply it.
    fn manifests(&self, options: &ManifestOptions) -> Vec<Value> {
        manifests::all(self.as_program(), options)
    }
    /// Puts it to work in a cluster of a manager: [`Manager::handle`] is its own, [`Manager::cluster`] another.
    fn install_in(&self, manager: &mut Manager, cluster: &Handle, namespaces: Namespaces);
    /// Puts it to work in the manager's own cluster.
    fn install(&self, manager: &mut Manager, namespaces: Namespaces) {
        let cluster = manager.handle();
        self.install_in(manager, &cluster, namespaces);
    }
    /// Runs it as a command; `args` begin with the program's name.
    fn run_blocking(&self, args: Vec<OsString>) -> ExitCode {
        command::run(self.as_program(), args)
    }
}

impl<O: Style> App<O> {
    /// An operator of a kind that somebody else defines.
    pub(crate) fn new(name: String, operator: O) -> Self {
        Self {
            name,
            declaration: Declaration::new(operator),
            chains: Vec::new(),
            hooks: Vec::new(),
            extensions: Vec::new(),
            needs: Vec::new(),
            version: None,
            commands: Vec::new(),
            abilities: Vec::new(),
        }
    }

    /// An operator of a kind of its own.
    pub(crate) fn of(name: String, operator: O) -> Self
    where
        O::Resource: CustomResource,
    {
        Self { chains: vec![Chain::only::<O::Resource>()], ..Self::new(name, operator) }
    }

    pub(crate) fn operator_mut(&mut self) -> &mut O {
        self.declaration.operator_mut()
    }

    /// Another name than the kind with `-operator`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The operator makes objects of kind `K`.
    pub fn owns<K: Object<DynamicType = ()> + Serialize>(mut self) -> Self {
        self.declaration = self.declaration.owns::<K>();
        self
    }

    /// The operator looks at objects of kind `K` that are below its resources.
    pub fn reads<K: Object<DynamicType = ()>>(mut self) -> Self {
        self.declaration = self.declaration.reads::<K>();
        self
    }

    /// The operator looks at objects of kind `K`; `map` says which resources a change concerns.
    pub fn watches<K: Object<DynamicType = ()>>(
        mut self,
        map: impl Fn(&Change<K>) -> Vec<ObjectKey> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.declaration = self.declaration.watches(map);
        self
    }

    /// The operator looks at the objects of kind `K` that `names` finds in a resource (in its namespace, if the kind has
    /// namespaces), and is asked again when one of them comes, changes or goes.
    pub fn refers_to<K: Object<DynamicType = ()>>(
        mut self,
        names: impl Fn(&O::Resource) -> Vec<String> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.declaration = self.declaration.refers_to::<K>(names);
        self
    }

    /// The operator is asked again about each resource whose key comes out of the stream that `events` makes: for things
    /// outside of the cluster. Readiness names a stream that ends.
    pub fn stream<S: Stream<Item = ObjectKey> + Send + 'static>(
        mut self,
        name: impl Into<String>,
        events: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.declaration = self.declaration.stream(name, events);
        self
    }

    /// The operator is asked again, about every `interval`, about the resources that `keys` finds.
    pub fn every<I: IntoIterator<Item = ObjectKey>>(
        mut self,
        interval: Duration,
        keys: impl Fn() -> I + Clone + Send + Sync + 'static,
    ) -> Self {
        self.declaration = self.declaration.every(interval, keys);
        self
    }

    /// The operator is asked again about the resources that a POST to `path` concerns (`run --events-bind-address`); `read`
    /// says which, or why the request is refused.
    pub fn endpoint(
        mut self,
        path: impl Into<String>,
        read: impl Fn(&http::Request<Bytes>) -> Result<Vec<ObjectKey>, String> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.declaration = self.declaration.endpoint(path, read);
        self
    }

    /// The operator is asked again about every resource after about `interval`, even if nothing changes.
    pub fn resync(mut self, interval: Duration) -> Self {
        self.declaration = self.declaration.resync(interval);
        self
    }

    /// The operator looks at the Pods of the workloads it owns.
    pub fn pods(mut self) -> Self {
        self.declaration = self.declaration.pods();
        self
    }

    /// The kind has several versions: clients may use each, and the operator's is one of them.
    ///
    /// # Panics
    /// If it is none of them.
    pub fn versions<Newest: CustomResource>(mut self, versions: &Versions<Newest>) -> Self
    where
        O::Resource: CustomResource,
    {
        let own = O::Resource::facts();
        let is_of = versions.chain().is_of(own.kind, &format!("{}/{}", own.group, own.version));
        assert!(is_of, "{} {} is none of the versions", own.kind, own.version);
        self.chains = vec![versions.chain().clone()];
        self
    }

    /// How many resources are worked on at the same time.
    pub fn workers(mut self, workers: usize) -> Self {
        self.declaration = self.declaration.workers(workers);
        self
    }

    /// Adds controllers of the author's own to the same manager: the way for what cannot be said as one intent (see
    /// [`Reconcile`](windlass_runtime::Reconcile)). `extend` gets the cluster and the namespaces that are served.
    /// What such controllers need is not known here: say it by [`App::allow`].
    pub fn with(mut self, extend: impl Fn(&mut Manager, &Handle, &Namespaces) + Send + Sync + 'static) -> Self {
        self.extensions.push(Box::new(extend));
        self
    }

    /// The operator must be allowed these `verbs` on a `resource` (its plural), beyond what follows from its kinds, where it
    /// serves resources.
    ///
    /// # Panics
    /// If one of them is `*`: what an operator may do is said in full.
    pub fn allow(self, group: &str, resource: &str, verbs: &[&str]) -> Self {
        self.also_needs(group, resource, verbs, Scope::Served)
    }

    /// The same for a kind that lives in no namespace, such as `nodes`.
    ///
    /// # Panics
    /// If one of them is `*`.
    pub fn allow_in_cluster(self, group: &str, resource: &str, verbs: &[&str]) -> Self {
        self.also_needs(group, resource, verbs, Scope::Cluster)
    }

    fn also_needs(mut self, group: &str, resource: &str, verbs: &[&str], scope: Scope) -> Self {
        self.needs.extend(rbac::asked(group, resource, verbs, scope));
        self
    }

    /// The operator's version, which charts and bundles carry: usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The program has one more command: `run` does it, with arguments that begin with `name`. For what an operator carries
    /// into the Pods that it makes, such as the supervisor of a server.
    pub fn command(mut self, name: &'static str, about: &'static str, run: fn(Vec<OsString>) -> ExitCode) -> Self {
        self.commands.push(OwnCommand { name, about, run });
        self
    }

    /// The `main` of an operator's binary.
    pub fn main(self) -> ExitCode {
        self.run_blocking(std::env::args_os().collect())
    }
}

impl<O: Operator> App<O> {
    /// The parts of a resource have an order (see [`Part`](windlass_core::Part)): resources get a finalizer, so that parts go
    /// in the reverse of it.
    pub fn ordered(mut self) -> Self {
        self.declaration = self.declaration.ordered();
        self
    }

    /// A resource can be let go of: when one is deleted of which `is_released` is true, all that was made for it stays as it is and
    /// belongs to nobody, until a resource of the same name takes it over again. Resources get a finalizer.
    pub fn releases(mut self, is_released: fn(&<O as Operator>::Resource) -> bool) -> Self {
        self.declaration = self.declaration.releases(is_released);
        self
    }
}

impl<O: Upgrades> App<O> {
    /// Resources are upgraded, and go back by themselves to what was last known to be good (see [`Upgrades`]). Revisions are
    /// kept as ControllerRevisions, and `status.upgrade` tells of them.
    pub fn upgrades(mut self) -> Self {
        self.declaration = self.declaration.upgrades();
        self.able::<<O as Operator>::Resource>(Ability::Upgrade)
    }
}

impl<O: Cleanup> App<O> {
    /// The operator has something to do before a resource may go: resources get a finalizer.
    pub fn cleanup(mut self) -> Self {
        self.declaration = self.declaration.cleanup();
        self
    }
}

impl<O: Style> Program for App<O> {
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
        if !self.declaration.is_namespaced() {
            namespaces.clear();
        }
        let upgraded = self.declaration.has_upgrades();
        let chains = self.chains.iter().map(|chain| chain.clone().upgraded(upgraded)).collect();
        Registration { name: self.name.clone(), hooks: self.hooks.clone(), chains, namespaces }
    }

    fn commands(&self) -> Vec<OwnCommand> {
        self.commands.clone()
    }

    fn abilities(&self) -> Vec<Provided> {
        self.abilities.clone()
    }

    fn kinds(&self) -> Vec<Declared> {
        self.declaration.declared()
    }

    fn needs(&self) -> Vec<Need> {
        let mut patches = Vec::new();
        if !self.chains.is_empty() {
            patches.push(rbac::REPORTS);
        }
        if self.declaration.patches_resources() {
            patches.push(rbac::HOLDS);
        }
        if self.chains.iter().any(Chain::converts) {
            patches.push(rbac::MOVES);
        }
        let basis = Basis {
            own: self.declaration.resource(),
            is_namespaced: self.declaration.is_namespaced(),
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
        self.declaration.install(manager, cluster, namespaces);
    }
}
