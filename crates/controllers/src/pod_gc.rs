//! Pods of nodes that are gone are deleted, and so are leaving Pods that never had a node.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::DeleteParams;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Informer, Manager, ObjectKey, Process};

use crate::actor::Actor;
use crate::disrupt::{Cause, disrupt};
use crate::pods;

const CAUSE: Cause = Cause { reason: "DeletionByPodGC", message: "PodGC: node no longer exists" };

/// How long a node may be missing before its Pods are given up.
const QUARANTINE: Duration = Duration::from_secs(40);

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let pods = manager.informers().all::<Pod>();
    let process = PodGc {
        actor: Actor::new(manager, "pod-garbage-collector"),
        nodes: nodes.clone(),
        pods: pods.clone(),
        missing: Mutex::default(),
    };
    let known = nodes.clone();
    let controller = Controller::keyed(manager, "pod-gc", process)
        .on(&nodes, |change| change.new.is_none().then(|| change.key().name))
        .on(&pods, move |change| place(change, &known));
    manager.add(controller);
}

/// The node of a Pod, if it is not there; the empty name for leaving Pods without one.
fn place(change: &Change<Pod>, nodes: &Informer<Node>) -> Option<String> {
    let pod = change.new.as_ref()?;
    match pods::node(pod) {
        Some(node) => nodes.get(&ObjectKey::cluster(node)).is_none().then(|| node.to_owned()),
        None => pods::is_terminating(pod).then(String::new),
    }
}

struct PodGc {
    actor: Actor,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    /// Since when a node is missing, by the clock's own time.
    missing: Mutex<HashMap<String, Duration>>,
}

impl Process for PodGc {
    type Key = String;

    async fn process(&self, node: &String, _: &Attempt) -> Result<Action, Error> {
        let unbound = node.is_empty();
        if !unbound && self.is_there(node).await? {
            self.missing().remove(node);
            return Ok(Action::Await);
        }
        let left = if unbound { Duration::ZERO } else { self.left(node) };
        if left > Duration::ZERO {
            return Ok(Action::Recheck(left));
        }
        let lost = self.pods.filter(|pod| match pods::node(pod) {
            Some(name) => name == node,
            None => unbound && pods::is_terminating(pod),
        });
        for pod in lost {
            let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
            if unbound {
                self.actor.delete_with(&*pod, params).await?;
            } else {
                disrupt(&self.actor, &ended(&pod), CAUSE, params).await?;
            }
        }
        self.missing().remove(node);
        Ok(Action::Await)
    }
}

/// The Pod as it must have ended: nobody else will say so, and who holds it by a finalizer waits for its end.
fn ended(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    if !pods::is_finished(&pod) {
        pod.status.get_or_insert_default().phase = Some("Failed".to_owned());
    }
    pod
}

impl PodGc {
    async fn is_there(&self, node: &str) -> Result<bool, Error> {
        if self.nodes.get(&ObjectKey::cluster(node)).is_some() {
            return Ok(true);
        }
        let api: Api<Node> = Api::all(self.actor.client.clone());
        Ok(api.get_metadata_opt(node).await?.is_some())
    }

    fn left(&self, node: &str) -> Duration {
        let now = self.actor.clock.elapsed();
        let since = *self.missing().entry(node.to_owned()).or_insert(now);
        (since + QUARANTINE).saturating_sub(now)
    }

    fn missing(&self) -> std::sync::MutexGuard<'_, HashMap<String, Duration>> {
        self.missing.lock().expect("no code that can panic runs under this lock")
    }
}
