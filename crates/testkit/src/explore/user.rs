//! The user of a scenario.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::judge::Judge;
use super::plan::StepFault;
use super::session::{Order, Session};
use super::world;
use crate::Kind;

/// So long must nothing change for everything to count as settled. More than faults last.
pub(super) const QUIET: Duration = Duration::from_secs(12);
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
    pub(super) fn new(client: Client, session: Arc<Session>, judge: Arc<Mutex<Judge>>) -> Self {
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
        let api: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        let until = self.session.now() + CREATE_MAX;
        let made = loop {
            match api.create(&PostParams::default(), &typed).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" && self.session.now() < until => {
                    tokio::time::sleep(LOOK).await;
                }
                made => break accepted(made),
            }
        };
        self.judge().wishes.create(key::<K>(&namespace, &made.name_any()), whole::<K>(object, &namespace));
        made
    }

    /// Merges `patch` into an object.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        let changed = self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        self.judge().wishes.change(&key::<K>(NAMESPACE, name), &patch);
        accepted(changed)
    }

    /// Deletes an object; does nothing if there is none. Does not wait until it is gone: [`User::settle`] does.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn delete<K: Kind>(&self, name: &str) {
        self.judge().wishes.delete(&key::<K>(NAMESPACE, name));
        match self.api::<K>().delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            deleted => drop(accepted(deleted)),
        }
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
                StepFault::Delete(object) => self.remove(&object).await,
                StepFault::DeleteWhileDown(object) => {
                    let (start, started) = tokio::sync::oneshot::channel();
                    self.session.lock().life += 1;
                    self.session.order(Order::Down(started));
                    self.remove(&object).await;
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
    async fn remove(&self, object: &str) {
        self.session.lock().deleted.insert(object.to_owned());
        let uri = self.judge().path_of(object);
        let Some(uri) = uri else { return };
        let request = http::Request::delete(uri).body(Vec::new());
        let request = request.expect("the path of an object is a path");
        let _ = self.client.request::<Value>(request).await;
    }

    async fn quiet(&self) {
        let began = self.session.now();
        loop {
            let now = self.session.now();
            self.judge().look(&self.session);
            let active = self.judge().changed_at.max(self.session.lock().active_at).max(began);
            if now.saturating_sub(active) >= QUIET {
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
    pub(super) async fn end(&self, stays: Duration) {
        self.settle().await;
        let before = self.session.lock().calls.len();
        tokio::time::sleep(stays).await;
        self.judge().look(&self.session);
        self.judge().stayed(before, &self.session);
    }

    fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().expect("a judge that panicked has failed the run")
    }
}

fn key<K: Kind>(namespace: &str, name: &str) -> String {
    world::key(&K::group(&()), &K::plural(&()), namespace, name)
}

/// The object with all that it takes to make it again.
fn whole<K: Kind>(mut object: Value, namespace: &str) -> Value {
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"]["namespace"] = namespace.into();
    object
}

fn accepted<T>(outcome: kube::Result<T>) -> T {
    match outcome {
        Ok(object) => object,
        Err(error) => panic!("the API server refused it: {error}"),
    }
}
