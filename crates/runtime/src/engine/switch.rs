//! The switches that every resource has: annotations by which people steer its operator.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_core::{CustomResource, Statement, condition, names};

use super::act::{Trouble, api, title};
use super::kinds::Children;
use super::step::RESTARTABLE;
use crate::key::ObjectKey;
use crate::metrics::Metrics;
use crate::reconcile::Error;

/// What the annotations of a resource ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Nothing is to be touched.
    pub(crate) paused: bool,
    /// All children are to be applied anew: the value that asks for it.
    pub(crate) force: Option<String>,
    /// The value that the Pods are to have been restarted for.
    pub(crate) restarted_at: Option<String>,
    /// Whether that value is new.
    pub(crate) restart: bool,
}

/// What a condition's message begins with; the value that was served follows.
const SERVED: &str = "as asked by the value ";

impl Switches {
    pub(crate) fn of<R: CustomResource>(resource: &R) -> Self {
        Self::read(resource.meta(), resource.status().map(|status| status.conditions.as_slice()).unwrap_or_default())
    }

    /// What the annotations ask for, and the conditions do not say was served.
    pub(crate) fn read(meta: &ObjectMeta, conditions: &[Condition]) -> Self {
        let value = |name: &str| meta.annotations.as_ref().and_then(|annotations| annotations.get(name)).cloned();
        let served = |type_: &str| {
            let message = &condition::find(conditions, type_)?.message;
            message.strip_prefix(SERVED).map(str::to_owned)
        };
        let (forced, restarted) = (served(names::condition::FORCED), served(names::condition::RESTARTED));
        let restart_at = value(names::RESTARTED_AT);
        Self {
            paused: value(names::PAUSED).as_deref() == Some("true"),
            force: value(names::FORCE).filter(|value| Some(value) != forced.as_ref()),
            restart: restart_at.is_some() && restart_at != restarted,
            // An annotation that is taken away again does not undo, and so repeat, the restart.
            restarted_at: restart_at.or(restarted),
        }
    }

    /// The conditions that follow when all was carried out.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        let served = |type_, reason, value: &String| Statement::new(type_, true, reason, format!("{SERVED}{value}"));
        let force = self.force.as_ref().map(|value| served(names::condition::FORCED, "Forced", value));
        let restart = self.restarted_at.as_ref().filter(|_| self.restart);
        let restart = restart.map(|value| served(names::condition::RESTARTED, "Restarted", value));
        force.into_iter().chain(restart).collect()
    }
}

/// Whose workloads are restarted, and in whose name.
pub(crate) struct Restart<'a> {
    /// The owner's uid.
    pub(crate) uid: &'a str,
    /// The value that asks for it.
    pub(crate) value: &'a str,
    /// The operator's name.
    pub(crate) manager: &'a str,
}

impl Restart<'_> {
    /// Restarts the Pods of `workloads` that the owner has, as `kubectl rollout restart` does: for operators that do not apply
    /// their children in every pass. Tells whether there was anything left to do.
    pub(crate) async fn carry_out(
        &self,
        workloads: impl Iterator<Item = &Arc<dyn Children>> + Send,
        client: &Client,
    ) -> Result<bool, Error> {
        let mut is_done = false;
        for children in workloads.filter(|children| RESTARTABLE.contains(&children.resource().kind.as_str())) {
            let resource = children.resource();
            for workload in children.owned_by(self.uid) {
                let ObjectKey { namespace, name } = ObjectKey::of_meta(workload.metadata());
                let template = &workload.value()["spec"]["template"];
                if template["metadata"]["annotations"][names::RESTARTED_AT] == self.value {
                    continue;
                }
                let annotations = json!({names::RESTARTED_AT: self.value});
                let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
                let params = PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
                let api = api(client, resource, namespace.as_deref());
                let failed = |source| Trouble::Api { verb: "restart", what: title(resource, &name), source };
                let patched = api.patch(&name, &params, &Patch::Merge(&patch)).await;
                patched.map_err(|source| Error::failed(failed(source)))?;
                is_done = true;
            }
        }
        Ok(is_done)
    }
}

/// What is said of a paused resource.
pub(crate) fn paused_statement() -> Statement {
    let message = format!("nothing is touched while the annotation {} is true", names::PAUSED);
    Statement::new(names::condition::PAUSED, true, "Paused", message)
}

/// What is said of a resource that was paused.
pub(crate) fn resumed_statement() -> Statement {
    Statement::new(names::condition::PAUSED, false, "Resumed", "")
}

/// The metrics of the switches of one controller.
#[derive(Debug)]
pub(crate) struct Counter {
    /// The controller's name.
    name: String,
    paused: Mutex<HashSet<ObjectKey>>,
}

impl Counter {
    pub(crate) fn new(name: String) -> Self {
        Self { name, paused: Mutex::default() }
    }

    /// Takes in whether `key` is paused; tells whether that is new.
    pub(crate) fn pause(&self, key: &ObjectKey, paused: bool, metrics: &Metrics) -> bool {
        let mut all = self.lock();
        let changed = if paused { all.insert(key.clone()) } else { all.remove(key) };
        if changed {
            metrics.paused(&self.name, all.len());
        }
        changed
    }

    /// Counts what was served.
    pub(crate) fn serve(&self, switches: &Switches, metrics: &Metrics) {
        if switches.force.is_some() {
            metrics.switched(&self.name, "force");
        }
        if switches.restart {
            metrics.switched(&self.name, "restart");
        }
    }

    pub(crate) fn gone(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.paused.lock().expect("no code that can panic runs under this lock")
    }
}
