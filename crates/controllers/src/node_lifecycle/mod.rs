//! Nodes that fall silent are said to be unknown, and the conditions of nodes become taints.

mod decide;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Patch;
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_runtime::{
    Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Process, Watch,
};

use crate::actor::{Actor, is_gone};
use crate::pods;

/// Where nodes have their leases.
const LEASES: &str = "kube-node-lease";

/// A lease that ran out is looked at again after this long, which is longer than nodes take between two renewals: a clock
/// that jumped or a machine that slept makes no node dead.
const DOUBT: Duration = Duration::from_secs(15);

/// Adds the controller to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let leases = manager.informers().get(Watch::<Lease>::all().namespace(Some(LEASES.to_owned())));
    let pods = manager.informers().all::<Pod>();
    let process = Lifecycle {
        actor: Actor::new(manager, "node-controller"),
        nodes: nodes.clone(),
        leases: leases.clone(),
        pods: pods.clone(),
        doubts: Mutex::default(),
    };
    let all = nodes.clone();
    let controller = Controller::keyed(manager, "node-lifecycle", process)
        .on(&nodes, move |change| concerned(change, &all))
        .on(&leases, |change| change.old.is_none().then(|| change.key().name))
        .on(&pods, |_| None);
    manager.add(controller);
}

/// The node itself, and all when it got well or ill: whether any is well matters to the others.
fn concerned(change: &Change<Node>, nodes: &Informer<Node>) -> Vec<String> {
    let is_well = |node: Option<&Node>| node.is_some_and(decide::is_ready);
    if is_well(change.old.as_deref()) == is_well(change.new.as_deref()) {
        return vec![change.key().name];
    }
    nodes.all().iter().map(|node| node.name_any()).collect()
}

struct Lifecycle {
    actor: Actor,
    nodes: Informer<Node>,
    leases: Informer<Lease>,
    pods: Informer<Pod>,
    /// Leases that were found to have run out: from when they are, and when that was seen.
    doubts: Mutex<HashMap<String, (Timestamp, Duration)>>,
}

impl Process for Lifecycle {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        let Some(node) = self.nodes.get(&ObjectKey::cluster(name)) else { return Ok(Action::Await) };
        let now = self.actor.clock.now();
        let lease = self.leases.get(&ObjectKey { namespace: Some(LEASES.to_owned()), name: name.clone() });
        let silent_from = decide::silent_from(lease.as_deref());
        let wait = self.wait(name, silent_from, now);
        if wait == Some(Duration::ZERO) {
            if let Some(conditions) = decide::silenced(&node, now) {
                let api: Api<Node> = Api::all(self.actor.client.clone());
                let patch = json!({
                    "metadata": {"resourceVersion": node.metadata.resource_version},
                    "status": {"conditions": conditions},
                });
                api.patch_status(name, &self.actor.patch(), &Patch::Strategic(patch)).await?;
                let text = format!("Node {name} status is now: NodeNotReady");
                self.actor.tell(&*node, Event::normal("NodeNotReady", text));
                // The change of the node brings it here again, for its taints.
                return Ok(Action::Recheck(DOUBT));
            }
            self.mark_pods(name).await?;
        }
        self.taint(&node, now).await?;
        match wait {
            None => Ok(Action::Await),
            Some(Duration::ZERO) => Ok(Action::Recheck(DOUBT)),
            Some(wait) => Ok(Action::Recheck(wait)),
        }
    }
}

impl Lifecycle {
    /// How long until the node may be called silent; zero if it is.
    fn wait(&self, name: &str, silent_from: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
        let silent_from = silent_from?;
        let mut doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        if silent_from > now {
            doubts.remove(name);
            return Some(Duration::try_from(silent_from.duration_since(now)).unwrap_or_default());
        }
        let elapsed = self.actor.clock.elapsed();
        let (of, since) = doubts.get(name).copied().unwrap_or((silent_from, elapsed));
        let since = if of == silent_from { since } else { elapsed };
        doubts.insert(name.to_owned(), (silent_from, since));
        Some((since + DOUBT).saturating_sub(elapsed))
    }

    async fn taint(&self, node: &Node, now: Timestamp) -> Result<(), Error> {
        let spare = !self.nodes.all().iter().any(|node| decide::is_ready(node));
        let wanted = decide::taints(node, spare, now);
        let known = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        if wanted == known {
            return Ok(());
        }
        let api: Api<Node> = Api::all(self.actor.client.clone());
        let patch = json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": (!wanted.is_empty()).then_some(wanted)},
        });
        match api.patch(&node.name_any(), &self.actor.patch(), &Patch::Merge(patch)).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Nobody should send requests to Pods of a silent node.
    async fn mark_pods(&self, node: &str) -> Result<(), Error> {
        let ready = self.pods.filter(|pod| pods::node(pod) == Some(node) && pods::is_ready(pod));
        for pod in ready {
            let mut pod = Pod::clone(&pod);
            let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
            for condition in conditions.iter_mut().filter(|condition| condition.type_ == "Ready") {
                condition.status = "False".to_owned();
                condition.last_transition_time =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(self.actor.clock.now()));
            }
            match self.actor.replace_status(&pod).await {
                Err(error) if !is_gone(&error) => return Err(error.into()),
                _ => self.actor.tell(&pod, Event::warning("NodeNotReady", "Node is not ready")),
            }
        }
        Ok(())
    }
}
