//! Nodes on which Pods only seem to run: no process, no container, but the status that a node would report.

mod addresses;
mod container;
mod fleet;
mod heartbeat;
mod node;
mod registration;
mod rule;
mod script;
mod status;
mod usage;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use windlass_runtime::{
    Action, Attempt, Change, Controller, Error, Event, Informer, Manager, ObjectKey, Priority, Process,
};

use crate::actor::{Actor, is_gone};
use crate::{pods, recheck};
use addresses::Addresses;
use fleet::Fleet;
use heartbeat::Heartbeat;
use registration::Registration;

pub use fleet::NODES_MAX;
pub use usage::FakeUsage;

/// The name of the nodes' writes and events.
const ACTOR: &str = "fake-node";

/// How many Pods are looked at together.
const WORKERS: usize = 8;

/// Adds `count` nodes to the manager, which tell `usage` of their Pods.
pub(crate) fn add(manager: &mut Manager, count: usize, usage: FakeUsage) {
    let fleet = Fleet::new(count);
    let nodes = manager.informers().all::<Node>();
    add_pods(manager, fleet, &nodes, usage);
    let registration = Registration { actor: Actor::new(manager, ACTOR), nodes: nodes.clone() };
    let registration = Controller::keyed(manager, "fake-node-registration", registration);
    fleet.names().for_each(|name| registration.queue().add(name, Priority::Normal));
    manager.add(registration.on(&nodes, move |change| ours(fleet, change)));
    let heart = Heartbeat { actor: Actor::new(manager, ACTOR), nodes: nodes.clone() };
    let heart = Controller::keyed(manager, "fake-node-heartbeat", heart);
    manager.add(heart.on(&nodes, move |change| ours(fleet, change).filter(|_| came_up(change))));
}

fn add_pods(manager: &mut Manager, fleet: Fleet, nodes: &Informer<Node>, usage: FakeUsage) {
    let pods = manager.informers().all::<Pod>();
    let addresses = Arc::new(Addresses::default());
    let process = Pods {
        actor: Actor::new(manager, ACTOR),
        fleet,
        nodes: nodes.clone(),
        pods: pods.clone(),
        addresses: addresses.clone(),
    };
    let stuck = pods.clone();
    let controller = Controller::keyed(manager, "fake-node", process)
        .workers(WORKERS)
        .on(&pods, move |change| {
            addresses.observe(change);
            usage.observe(change);
            change.new.iter().filter(|pod| pods::node(pod).is_some()).map(|_| change.key()).collect::<Vec<_>>()
        })
        .on(nodes, move |change| if came_up(change) { on_node(&stuck, &change.key().name) } else { vec![] });
    manager.add(controller);
}

fn ours(fleet: Fleet, change: &Change<Node>) -> Option<String> {
    Some(change.key().name).filter(|name| fleet.has(name))
}

/// Whether a node has appeared or come back to life.
fn came_up(change: &Change<Node>) -> bool {
    let lives = |node: &Node| !fleet::is_down(node);
    change.new.as_deref().is_some_and(lives) && !change.old.as_deref().is_some_and(lives)
}

fn on_node(pods: &Informer<Pod>, node: &str) -> Vec<ObjectKey> {
    pods.filter(|pod| pods::node(pod) == Some(node)).iter().map(|pod| ObjectKey::of(&**pod)).collect()
}

struct Pods {
    actor: Actor,
    fleet: Fleet,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    addresses: Arc<Addresses>,
}

impl Process for Pods {
    type Key = ObjectKey;

    async fn process(&self, key: &ObjectKey, _: &Attempt) -> Result<Action, Error> {
        let Some(pod) = self.pods.get(key) else { return Ok(Action::Await) };
        let Some(node) = pods::node(&pod).filter(|node| self.fleet.has(node)) else { return Ok(Action::Await) };
        if self.nodes.get(&ObjectKey::cluster(node)).is_some_and(|node| fleet::is_down(&node)) {
            return Ok(Action::Await);
        }
        if pods::is_terminating(&pod) {
            return self.stop(&pod).await;
        }
        let now = self.actor.clock.now();
        let outlook = status::outlook(&pod, &fleet::address(node), || self.addresses.give(&pod), now);
        let then = recheck::at(outlook.next, now);
        if pod.status.as_ref() == Some(&outlook.status) {
            return Ok(then);
        }
        if let Some(error) = outlook.error {
            self.actor.tell(&*pod, Event::warning("FakeRuleInvalid", error.to_string()));
        }
        match self.actor.replace_status(&Pod { status: Some(outlook.status), ..Pod::clone(&pod) }).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(then),
        }
    }
}

impl Pods {
    /// Lets a leaving Pod go when its containers have stopped. Who holds it by a finalizer sees how they ended.
    async fn stop(&self, pod: &Pod) -> Result<Action, Error> {
        let now = self.actor.clock.now();
        let end = status::stops_at(pod, now);
        if end > now {
            return Ok(recheck::at(Some(end), now));
        }
        let mut last = pod.clone();
        if !pod.finalizers().is_empty() {
            last.status = Some(status::stopped(pod, now));
            if last.status != pod.status {
                last = self.actor.replace_status(&last).await?;
            }
        }
        if pod.metadata.deletion_grace_period_seconds != Some(0) {
            let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
            self.actor.delete_with(&last, params).await?;
        }
        Ok(Action::Await)
    }
}
