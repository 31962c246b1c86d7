//! Pods leave nodes whose `NoExecute` taints they do not tolerate, or not for longer.

mod decide;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::ResourceExt;
use kube::api::DeleteParams;
use windlass_runtime::{Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Process};

use crate::actor::Actor;
use crate::disrupt::{Cause, disrupt};
use crate::pods;
use decide::Stay;

const CAUSE: Cause =
    Cause { reason: "DeletionByTaintManager", message: "Taint manager: deleting due to NoExecute taint" };

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let pods = manager.informers().all::<Pod>();
    let process = Evictions {
        actor: Actor::new(manager, "taint-eviction-controller"),
        nodes: nodes.clone(),
        pods: pods.clone(),
        since: Mutex::default(),
    };
    let on_node = pods.clone();
    let known = nodes.clone();
    let controller = Controller::keyed(manager, "taint-eviction", process)
        .on(&nodes, move |change| if matters(change) { residents(&on_node, &change.key().name) } else { vec![] })
        .on(&pods, move |change| endangered(change, &known));
    manager.add(controller);
}

fn matters(change: &Change<Node>) -> bool {
    let taints = |node: &Node| decide::no_execute(node).cloned().collect::<Vec<Taint>>();
    change.old.as_deref().map(taints).unwrap_or_default() != change.new.as_deref().map(taints).unwrap_or_default()
}

fn residents(pods: &Informer<Pod>, node: &str) -> Vec<ObjectKey> {
    pods.filter(|pod| pods::node(pod) == Some(node)).iter().map(|pod| ObjectKey::of(&**pod)).collect()
}

/// A Pod that has come to a tainted node, or is gone from it.
fn endangered(change: &Change<Pod>, nodes: &Informer<Node>) -> Option<ObjectKey> {
    let node = pods::node(change.object())?;
    let node = nodes.get(&ObjectKey::cluster(node))?;
    decide::no_execute(&node).next().map(|_| change.key())
}

struct Evictions {
    actor: Actor,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    /// Since when a Pod has been on a tainted node, by its UID.
    since: Mutex<HashMap<ObjectKey, (String, Duration)>>,
}

impl Process for Evictions {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let pod = self.pods.get(key).filter(|pod| pods::is_active(pod));
        let Some(pod) = pod else { return Ok(self.forget(key)) };
        let node = pods::node(&pod).and_then(|node| self.nodes.get(&ObjectKey::cluster(node)));
        let Some((spec, node)) = pod.spec.as_ref().zip(node) else { return Ok(self.forget(key)) };
        let Stay::For(time) = decide::stay(spec, &node) else {
            if self.forget_if_known(key) {
                let text = format!("Cancelling deletion of Pod {key}");
                self.actor.tell(&*pod, Event::normal("TaintManagerEviction", text));
            }
            return Ok(Action::Await);
        };
        let left = self.left(key, &pod, Duration::try_from(time).unwrap_or_default());
        if left > Duration::ZERO {
            return Ok(Action::Recheck(left));
        }
        self.actor.tell(&*pod, Event::normal("TaintManagerEviction", format!("Marking for deletion Pod {key}")));
        disrupt(&self.actor, &pod, CAUSE, DeleteParams::background()).await?;
        Ok(self.forget(key))
    }
}

impl Evictions {
    fn left(&self, key: &ObjectKey, pod: &Pod, time: Duration) -> Duration {
        let (now, uid) = (self.actor.clock.elapsed(), pod.uid().unwrap_or_default());
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = since.entry(key.clone()).or_insert_with(|| (uid.clone(), now));
        if entry.0 != uid {
            *entry = (uid, now);
        }
        (entry.1 + time).saturating_sub(now)
    }

    fn forget(&self, key: &ObjectKey) -> Action {
        self.forget_if_known(key);
        Action::Await
    }

    fn forget_if_known(&self, key: &ObjectKey) -> bool {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(key).is_some()
    }
}
