//! The user of a scenario.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::judge::Judge;
use super::plan::{Plan, StepFault};
use super::session::{Order, Session};
use super::world;
use crate::Kind;

/// So long it may take to settle.
const SETTLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How often the user looks.
const LOOK: Duration = Duration::from_secs(3);
/// How long a user tries to make an object while its predecessor is still there.
const CREATE_MAX: Duration = Duration::from_secs(600);
const NAMESPACE: &str = "default";

/// The user of a scenario: makes and changes resources, and waits until the operator has done its work. Objects that
/// name no namespace are in `default`.
#[derive(Clone)]
pub struct User {
    client: Client,
    session: Arc<Session>,
    judge: Arc<Mutex<Judge>>,
}

impl User {
    pub(crate) fn new(client: Client, session: Arc<Session>, judge: Arc<Mutex<Judge>>) -> Self {
        Self { client, session, judge }
    }

    /// A client with every right, for what is not here. What is done with it does not count as the user's.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Makes an object. If one of this name is still on its way out, waits for that.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn create<K: Kind>(&self, object: Value) -> K {
        let typed: K = match serde_json::from_value(object.clone()) {
            Ok(object) => object,
            Err(error) => panic!("not a {}: {error}", K::kind(&())),
        };
        let namespace = typed.namespace().unwrap_or_else(|| NAMESPACE.to_owned());
        let made = accepted(self.make(&Item::of::<K>(&namespace, &typed.name_any()), object).await);
        serde_json::from_value(made).expect("the API answers with what was made")
    }

    /// Merges `patch` into an object.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        let changed = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        self.judge().wishes.change(&Item::of::<K>(NAMESPACE, name).key(), &patch);
        accepted(changed)
    }

    /// Deletes an object; does nothing if there is none. Does not wait until it is gone: [`User::settle`] does.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn delete<K: Kind>(&self, name: &str) {
        self.delete_with::<K>(name, &DeleteParams::default()).await;
    }

    /// The same with parameters, such as what becomes of what the object owns.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn delete_with<K: Kind>(&self, name: &str, params: &DeleteParams) {
        self.remove(&Item::of::<K>(NAMESPACE, name), params).await;
    }

    /// Makes an object of a built-in kind that says its `apiVersion` and `kind`, for kinds that live in no namespace and for
    /// other namespaces.
    ///
    /// # Panics
    /// If it is refused, or if there is no such kind.
    pub async fn create_object(&self, object: Value) {
        accepted(self.make(&Item::of_object(&object), object.clone()).await);
    }

    /// Deletes such an object; of a namespace, with all that is the user's in it.
    ///
    /// # Panics
    /// As [`User::create_object`].
    pub async fn delete_object(&self, object: &Value) {
        self.remove(&Item::of_object(object), &DeleteParams::default()).await;
    }

    /// Makes an object of any kind.
    pub(crate) async fn make(&self, item: &Item, object: Value) -> kube::Result<Value> {
        let object = item.whole(object);
        let until = self.session.now() + CREATE_MAX;
        let bytes = object.to_string().into_bytes();
        let made = loop {
            match self.ask(http::Request::post(item.place()), bytes.clone()).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" && self.session.now() < until => {
                    tokio::time::sleep(LOOK).await;
                }
                made => break made?,
            }
        };
        self.judge().wishes.create(item.key(), object);
        Ok(made)
    }

    /// Replaces the spec of an object.
    pub(crate) async fn set_spec(&self, item: &Item, spec: &Value) -> kube::Result<Value> {
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]).to_string().into_bytes();
        let request = http::Request::patch(item.path()).header("Content-Type", "application/json-patch+json");
        let changed = self.ask(request, patch).await?;
        self.judge().wishes.set_spec(&item.key(), spec);
        Ok(changed)
    }

    /// Deletes an object, if it is there.
    pub(crate) async fn remove(&self, item: &Item, params: &DeleteParams) {
        self.judge().wishes.delete(&item.key());
        let body = serde_json::to_vec(params).expect("they can be written as JSON");
        match self.ask(http::Request::delete(item.path()), body).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(accepted(deleted)),
        }
    }

    async fn ask(&self, request: http::request::Builder, body: Vec<u8>) -> kube::Result<Value> {
        let request = request.body(body).expect("the path of an object is a path");
        self.client.request(request).await
    }

    /// The object called `name`.
    ///
    /// # Panics
    /// If it cannot be asked for.
    pub async fn get<K: Kind>(&self, name: &str) -> Option<K> {
        accepted(self.api::<K>().get_opt(name).await)
    }

    /// Waits until everything is quiet. In some runs the user is impatient, and goes on before that.
    pub async fn settle(&self) {
        let step = self.session.lock().step;
        self.session.acted.notify_one();
        let is_settled = tokio::select! {
            biased;
            () = self.session.hurry.notified() => false,
            () = self.quiet() => true,
        };
        if is_settled {
            self.judge().settled(step, &self.session);
            self.disturb(step).await;
        }
        self.session.lock().step += 1;
    }

    /// What the plan does once everything is quiet: it must become as it was.
    async fn disturb(&self, step: usize) {
        let faults: Vec<StepFault> = self.session.plan.after_step(step).cloned().collect();
        for fault in faults {
            let before = self.session.lock().calls.len();
            let is_restart = fault == StepFault::Restart;
            match fault {
                StepFault::Restart => self.session.crash(),
                StepFault::Stale(event) => {
                    let revision = self.judge().before_event(event, &self.session);
                    self.session.look_back(revision);
                    self.session.crash();
                }
                StepFault::Delete(object) => self.meddle(&object).await,
                StepFault::DeleteWhileDown(object) => {
                    let (start, started) = tokio::sync::oneshot::channel();
                    self.session.end_all();
                    self.session.order(Order::Down(started));
                    self.meddle(&object).await;
                    tokio::time::sleep(LOOK).await;
                    let _ = start.send(());
                }
                StepFault::Fresh => continue,
            }
            self.quiet().await;
            if is_restart {
                self.judge().idle(before, &self.session);
            }
            self.judge().settled(step, &self.session);
        }
    }

    /// Deletes an object in somebody else's name.
    async fn meddle(&self, object: &str) {
        self.session.lock().deleted.insert(object.to_owned());
        let uri = self.judge().path_of(object);
        let Some(uri) = uri else { return };
        let _ = self.ask(http::Request::delete(uri), Vec::new()).await;
    }

    async fn quiet(&self) {
        let (began, quiet) = (self.session.now(), self.judge().quiet());
        loop {
            let now = self.session.now();
            self.judge().look(&self.session);
            let active = self.judge().changed_at.max(self.session.lock().active_at).max(began);
            if now.saturating_sub(active) >= quiet {
                return;
            }
            if now.saturating_sub(began) > SETTLE_MAX {
                self.session.violate(format!("does not settle: something still changes after {SETTLE_MAX:?}"));
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The end of the scenario: everything settles, and stays so.
    pub(crate) async fn end(&self, stays: Duration) {
        self.settle().await;
        self.stays(stays).await;
        self.judge().left_over(&self.session);
        self.judge().made_again(&self.session);
    }

    /// Does nothing for some time: then nobody may do anything.
    pub(crate) async fn stays(&self, duration: Duration) {
        let before = self.session.lock().calls.len();
        tokio::time::sleep(duration).await;
        self.judge().look(&self.session);
        self.judge().idle(before, &self.session);
    }

    /// Goes on with the step of this number.
    pub(crate) fn skip_to(&self, step: usize) {
        self.session.lock().step = step;
    }

    /// What goes wrong in this run.
    pub(crate) fn plan(&self) -> &Plan {
        &self.session.plan
    }

    /// Says that something is wrong.
    pub(crate) fn violate(&self, what: String) {
        self.session.violate(what);
    }

    fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().expect("a judge that panicked has failed the run")
    }
}

/// An object of the user's, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    /// `None` if its kind lives in no namespace.
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Item {
    fn of<K: Kind>(namespace: &str, name: &str) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    /// An object of a built-in kind.
    ///
    /// # Panics
    /// If there is no such kind.
    pub(crate) fn of_object(object: &Value) -> Self {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = object["kind"].as_str().unwrap_or_default();
        let Some(known) = windlass_schema::builtin().by_kind(group, version, kind) else {
            panic!("there is no kind {kind:?} in {group:?} {version:?}");
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: known.plural.clone(),
            namespace: known.namespaced.then(|| namespace.to_owned()),
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Its key in the store.
    pub(crate) fn key(&self) -> String {
        world::key(&self.group, &self.plural, self.namespace.as_deref().unwrap_or_default(), &self.name)
    }

    /// The path of its kind in the API.
    fn place(&self) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        match &self.namespace {
            Some(namespace) => format!("{root}/{}/namespaces/{namespace}/{}", self.version, self.plural),
            None => format!("{root}/{}/{}", self.version, self.plural),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.place(), self.name)
    }

    /// The object with all that it takes to make it.
    fn whole(&self, mut object: Value) -> Value {
        let group = if self.group.is_empty() { String::new() } else { format!("{}/", self.group) };
        object["apiVersion"] = format!("{group}{}", self.version).into();
        object["kind"] = self.kind.as_str().into();
        object["metadata"]["name"] = self.name.as_str().into();
        if let Some(namespace) = &self.namespace {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        object
    }
}

fn accepted<T>(outcome: kube::Result<T>) -> T {
    match outcome {
        Ok(object) => object,
        Err(error) => panic!("the API server refused it: {error}"),
    }
}
