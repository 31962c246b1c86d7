//! A [`Reconcile`] as an operator like every other: its objects can be paused, forced and restarted, and cool down in a loop.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::api::{Patch, PatchParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use windlass_core::{CustomResource, Event, Statement, condition, names};

use crate::engine::act::api;
use crate::engine::heat;
use crate::engine::kinds::Nursery;
use crate::engine::switch::{Counter, Restart, Switches, paused_statement, resumed_statement};
use crate::engine::{Outfit, Style};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::reconcile::{Action, Context, Crash, Error, Reconcile};

/// The conditions that the switches have.
const CONDITIONS: [&str; 3] = [names::condition::PAUSED, names::condition::FORCED, names::condition::RESTARTED];

/// A [`Reconcile`] as a way to write an operator: [`Declaration`](crate::engine::Declaration) puts it to work.
pub struct Reconciled<R: Reconcile> {
    reconcile: Arc<R>,
    conditions: Option<ReadConditions<R::Resource>>,
}

impl<R: Reconcile> Reconciled<R> {
    /// Events tell of the switches: the kind is somebody else's.
    pub fn new(reconcile: R) -> Self {
        Self { reconcile: Arc::new(reconcile), conditions: None }
    }

    /// Conditions tell of the switches: the kind has the standard status.
    pub fn with_conditions(reconcile: R) -> Self
    where
        R::Resource: CustomResource,
    {
        let read: ReadConditions<R::Resource> =
            |object| object.status().map(|status| status.conditions.clone()).unwrap_or_default();
        Self { conditions: Some(read), ..Self::new(reconcile) }
    }
}

impl<R: Reconcile<Resource: Object<DynamicType = ()>>> Style for Reconciled<R> {
    type Resource = R::Resource;
    type Engine = Switched<R>;

    fn engine(self: Arc<Self>, outfit: Outfit<Self>) -> Switched<R> {
        Switched {
            reconcile: self.reconcile.clone(),
            counter: Counter::new(outfit.name),
            conditions: self.conditions,
            nursery: outfit.nursery,
            served: Mutex::default(),
        }
    }

    /// Its author takes caches for the truth.
    fn is_lenient(&self) -> bool {
        false
    }
}

/// A [`Reconcile`] whose objects have the switches pause, force and restart.
///
/// A paused object is not reconciled until it is resumed, its deletion included. A forced run is told by [`Context::is_forced`]. After
/// a run that was asked to restart, the Pods of the object's workloads are. One that is in a hot loop is left alone for a while.
pub struct Switched<R: Reconcile> {
    reconcile: Arc<R>,
    counter: Counter,
    /// How to read the conditions of the standard status, where the kind has one.
    conditions: Option<ReadConditions<R::Resource>>,
    nursery: Nursery,
    /// What was served last, also where a status cannot say it, or its author did away with it.
    served: Mutex<HashMap<ObjectKey, Served>>,
}

type ReadConditions<K> = fn(&K) -> Vec<Condition>;

#[derive(Clone, Debug, Default)]
struct Served {
    force: Option<String>,
    restart: Option<String>,
    /// The generation that was looked at.
    generation: Option<i64>,
}

impl<R: Reconcile<Resource: Object<DynamicType = ()>>> Switched<R> {
    /// What is asked for and was not served.
    fn switches(&self, key: &ObjectKey, object: &R::Resource) -> Switches {
        let conditions = self.conditions.map(|read| read(object)).unwrap_or_default();
        let mut switches = Switches::read(object.meta(), &conditions);
        if let Some(served) = self.served().get(key) {
            switches.force = switches.force.filter(|value| Some(value) != served.force.as_ref());
            switches.restart = switches.restart && switches.restarted_at != served.restart;
        }
        switches
    }

    /// What to do about an object that is in a loop: nothing, for a while.
    async fn cool_down(
        &self,
        key: &ObjectKey,
        object: &R::Resource,
        cx: &Context<R::Resource>,
    ) -> Result<Option<Action>, Error> {
        let generation = object.meta().generation;
        let before = match self.served().entry(key.clone()) {
            Entry::Occupied(mut known) => Some(std::mem::replace(&mut known.get_mut().generation, generation)),
            Entry::Vacant(place) => {
                place.insert(Served { generation, ..Served::default() });
                None
            }
        };
        let Some(hot) = before.and_then(|acted_on| heat::hot(object, acted_on, cx)) else { return Ok(None) };
        // An event tells of it in any case.
        if self.conditions.is_some() {
            self.tell(object, vec![heat::hot_statement(&hot.message)], cx).await?;
        }
        Ok(Some(heat::rest(&hot, cx)))
    }

    fn remember(&self, key: ObjectKey, switches: &Switches) {
        let mut all = self.served();
        let served = all.entry(key).or_default();
        if switches.force.is_some() {
            served.force.clone_from(&switches.force);
        }
        if switches.restart {
            served.restart.clone_from(&switches.restarted_at);
        }
    }

    fn served(&self) -> MutexGuard<'_, HashMap<ObjectKey, Served>> {
        self.served.lock().expect("no code that can panic runs under this lock")
    }

    /// Restarts the Pods of what `object` owns; tells whether there was anything left to do.
    async fn restart(&self, object: &R::Resource, value: &str, cx: &Context<R::Resource>) -> Result<bool, Error> {
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let restart = Restart { uid, value, manager: cx.name() };
        restart.carry_out(self.nursery.iter(), &cx.client()).await
    }

    /// Tells what the switches did, in the status or by events.
    async fn tell(
        &self,
        object: &R::Resource,
        statements: Vec<Statement>,
        cx: &Context<R::Resource>,
    ) -> Result<(), Error> {
        if statements.is_empty() {
            return Ok(());
        }
        let Some(read) = self.conditions else {
            for statement in statements {
                cx.events().record(object, &(), Event::normal(statement.reason, statement.message));
            }
            return Ok(());
        };
        let before: Vec<Condition> = read(object).into_iter().filter(is_own).collect();
        let mut conditions = before.clone();
        for statement in statements {
            condition::set(&mut conditions, statement, object.meta().generation, cx.clock().now());
        }
        if conditions == before { Ok(()) } else { self.write(object, &conditions, cx).await }
    }

    /// Writes these conditions and no others: the rest of the status is its author's.
    async fn write(
        &self,
        object: &R::Resource,
        conditions: &[Condition],
        cx: &Context<R::Resource>,
    ) -> Result<(), Error> {
        let (meta, resource) = (object.meta(), ApiResource::erase::<R::Resource>(&()));
        let patch: Value = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": meta.name, "uid": meta.uid},
            "status": {"conditions": conditions},
        });
        let params = PatchParams::apply(&format!("{}-switches", cx.name())).force();
        let api = api(&cx.client(), &resource, meta.namespace.as_deref());
        match api.patch_status(meta.name.as_deref().unwrap_or_default(), &params, &Patch::Apply(&patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            // A status that must have more than conditions is its author's to begin.
            Err(kube::Error::Api(status)) if status.code == 422 => {
                for it in conditions {
                    cx.events().record(object, &(), Event::normal(it.reason.clone(), it.message.clone()));
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a condition is said here: all others are the author's.
fn is_own(condition: &Condition) -> bool {
    let is_of_loops = condition.type_ == names::condition::DEGRADED && heat::is_of_loops(&condition.reason);
    is_of_loops || CONDITIONS.contains(&condition.type_.as_str())
}

impl<R: Reconcile<Resource: Object<DynamicType = ()>>> Reconcile for Switched<R> {
    type Resource = R::Resource;

    async fn reconcile(&self, object: Arc<R::Resource>, cx: &Context<R::Resource>) -> Result<Action, Error> {
        let key = ObjectKey::of(&*object);
        let mut switches = self.switches(&key, &object);
        let changed = self.counter.pause(&key, switches.paused, &cx.handle.metrics);
        if switches.paused {
            // A status is put right at any time; an event tells of the change only.
            let is_told = changed || self.conditions.is_some();
            let statements = if is_told { vec![paused_statement()] } else { Vec::new() };
            self.tell(&object, statements, cx).await?;
            return Ok(Action::Await);
        }
        let before = self.conditions.map(|read| read(&object));
        let was = |type_: &str| before.as_deref().is_some_and(|it| condition::is_true(it, type_));
        let is_resumed = was(names::condition::PAUSED) || before.is_none() && changed;
        if object.meta().deletion_timestamp.is_some() {
            self.tell(&object, is_resumed.then(resumed_statement).into_iter().collect(), cx).await?;
            return self.reconcile.reconcile(object, cx).await;
        }
        if let Some(action) = self.cool_down(&key, &object, cx).await? {
            return Ok(action);
        }
        cx.force(switches.force.is_some());
        let action = self.reconcile.reconcile(object.clone(), cx).await?;
        if let Some(value) = switches.restarted_at.clone().filter(|_| switches.restart) {
            let is_done = self.restart(&object, &value, cx).await?;
            // Without a status, Pods that were restarted already say that this was served before.
            switches.restart = is_done || self.conditions.is_some();
        }
        let mut statements = switches.statements();
        statements.extend(is_resumed.then(resumed_statement));
        let degraded = before.iter().flatten().find(|it| it.type_ == names::condition::DEGRADED && is_own(it));
        statements.extend(degraded.map(|it| heat::over_statement(&it.reason)));
        self.tell(&object, statements, cx).await?;
        self.counter.serve(&switches, &cx.handle.metrics);
        self.remember(key, &switches);
        Ok(action)
    }

    async fn crashed(&self, object: Arc<R::Resource>, crash: &Crash, cx: &Context<R::Resource>) {
        self.reconcile.crashed(object, crash, cx).await;
    }

    fn gone(&self, key: &ObjectKey) {
        self.counter.gone(key);
        self.served().remove(key);
        self.reconcile.gone(key);
    }
}
