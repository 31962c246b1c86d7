//! The switches that every resource has: annotations by which people steer its operator.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use windlass_core::{CustomResource, Statement, condition, names};

use super::act::{Trouble, api, title};
use super::kinds::Nursery;
use super::step::{Owner, RESTARTABLE};
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
        let annotations = resource.meta().annotations.as_ref();
        let value = |name: &str| annotations.and_then(|annotations| annotations.get(name)).cloned();
        let conditions = resource.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
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

    /// Counts that people used them, when all was carried out.
    pub(crate) fn count(&self, metrics: &Metrics, controller: &str) {
        if self.force.is_some() {
            metrics.switched(controller, "force");
        }
        if self.restart {
            metrics.switched(controller, "restart");
        }
    }
}

/// The resources of a controller that are paused.
#[derive(Debug, Default)]
pub(crate) struct Paused(Mutex<HashSet<ObjectKey>>);

impl Paused {
    /// Takes in whether a resource is paused, and shows how many are.
    pub(crate) fn note(&self, key: &ObjectKey, paused: bool, metrics: &Metrics, controller: &str) {
        let mut all = self.lock();
        let changed = if paused { all.insert(key.clone()) } else { all.remove(key) };
        if changed {
            metrics.paused(controller, all.len());
        }
    }

    /// The resource is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.0.lock().expect("no code that can panic runs under this lock")
    }
}

/// Restarts the Pods of what a resource owns, as `kubectl rollout restart` does: for operators that do not apply their children
/// in every pass.
pub(crate) async fn restart(nursery: &Nursery, owner: &Owner, client: &Client) -> Result<(), Error> {
    let Some(value) = &owner.restarted_at else { return Ok(()) };
    for children in nursery.iter().filter(|children| RESTARTABLE.contains(&children.resource().kind.as_str())) {
        let resource = children.resource();
        let own = children.owned_by(&owner.reference.uid).into_iter().filter(|meta| owner.may_prune(meta));
        for (name, namespace) in own.filter_map(|meta| Some((meta.name?, meta.namespace))) {
            let template = json!({"metadata": {"annotations": {names::RESTARTED_AT: value}}});
            let patch = json!({"spec": {"template": template}});
            let params = PatchParams { field_manager: Some(owner.manager.clone()), ..PatchParams::default() };
            let workloads = api(client, &resource, namespace.as_deref());
            let restarted = workloads.patch(&name, &params, &Patch::Merge(&patch)).await;
            let failed = |source| Trouble::Api { verb: "restart", what: title(&resource, &name), source };
            restarted.map_err(|source| Error::failed(failed(source)))?;
        }
    }
    Ok(())
}
