//! A node that only seems to run its Pods: they are running and ready as soon as they are bound, and gone when deleted.

mod addresses;
mod heartbeat;
mod status;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::DeleteParams;
use windlass_runtime::{
    Action, Attempt, Context, Controller, Error, Informer, Manager, ObjectKey, Priority, Process, Reconcile,
};

use addresses::Addresses;

use crate::actor::{Actor, exists_already, is_gone};
use crate::{pods, recheck};

/// The name of the node.
const NODE: &str = "fake-node-0";

/// Adds the node to the manager.
pub(crate) fn add(manager: &mut Manager) {
    let nodes = manager.informers().all::<Node>();
    let actor = Actor::new(manager, "fake-node");
    let running = FakeNode { actor, pods: manager.informers().all::<Pod>(), addresses: Addresses::default() };
    let controller = Controller::of(manager, running).named(manager, "fake-node");
    manager.add(controller);
    let keeper = Controller::keyed(
        manager,
        "fake-node-registration",
        Registration { actor: Actor::new(manager, "fake-node"), nodes: nodes.clone() },
    );
    keeper.queue().add((), Priority::Normal);
    let heart = heartbeat::Heartbeat { actor: Actor::new(manager, "fake-node"), nodes: nodes.clone() };
    let heart = Controller::keyed(manager, "fake-node-heartbeat", heart);
    manager.add(heart.on(&nodes, |change| (change.key().name == NODE && change.old.is_none()).then_some(())));
    manager.add(keeper.on(&nodes, |change| (change.key().name == NODE).then_some(())));
}

struct Registration {
    actor: Actor,
    nodes: Informer<Node>,
}

impl Process for Registration {
    type Key = ();

    async fn process(&self, (): &(), _: &Attempt) -> Result<Action, Error> {
        let api: Api<Node> = Api::all(self.actor.client.clone());
        let now = self.actor.clock.now();
        let node = match self.nodes.get(&ObjectKey::cluster(NODE)) {
            Some(node) => Node::clone(&node),
            None => match api.create(&self.actor.post(), &status::node(NODE)).await {
                Ok(node) => node,
                Err(error) if exists_already(&error) => return Ok(Action::Await),
                Err(error) => return Err(error.into()),
            },
        };
        let wanted = status::node_status(node.status.as_ref(), now);
        if node.status.as_ref() != Some(&wanted) {
            let mut node = Node { status: Some(wanted), ..node };
            node.metadata.managed_fields = None;
            api.replace_status(NODE, &self.actor.post(), &node).await?;
        }
        Ok(Action::Await)
    }
}

struct FakeNode {
    actor: Actor,
    pods: Informer<Pod>,
    addresses: Addresses,
}

impl Reconcile for FakeNode {
    type Resource = Pod;

    async fn reconcile(&self, pod: Arc<Pod>, _: &Context<Pod>) -> Result<Action, Error> {
        if pods::node(&pod) != Some(NODE) {
            return Ok(Action::Await);
        }
        if pods::is_terminating(&pod) {
            let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::background() };
            self.actor.delete_with(&*pod, params).await?;
            return Ok(Action::Await);
        }
        let now = self.actor.clock.now();
        let wanted = status::pod_status(&pod, || self.free_address(&pod), now);
        let end = [status::end(&pod, now), status::deadline(&pod, now)].into_iter().flatten().min();
        let end = end.filter(|end| *end > now && !pods::is_finished(&pod));
        let then = recheck::at(end, now);
        if pod.status.as_ref() == Some(&wanted) {
            return Ok(then);
        }
        match self.actor.replace_status(&Pod { status: Some(wanted), ..Pod::clone(&pod) }).await {
            Err(error) if !is_gone(&error) => Err(error.into()),
            _ => Ok(then),
        }
    }
}

impl FakeNode {
    /// An address that no Pod has.
    fn free_address(&self, pod: &Pod) -> String {
        self.addresses.give(pod, self.pods.all().iter().map(|pod| &**pod))
    }
}
