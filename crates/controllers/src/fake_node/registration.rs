//! The nodes as objects: made when they are missing, healthy unless they are wanted dead.

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use windlass_runtime::{Action, Attempt, Error, Informer, ObjectKey, Process};

use super::{fleet, node};
use crate::actor::{Actor, exists_already};

/// Keeps the objects.
pub(super) struct Registration {
    pub(super) actor: Actor,
    pub(super) nodes: Informer<Node>,
}

impl Process for Registration {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        let api: Api<Node> = Api::all(self.actor.client.clone());
        let node = match self.nodes.get(&ObjectKey::cluster(name)) {
            Some(node) => Node::clone(&node),
            None => match api.create(&self.actor.post(), &node::node(name)).await {
                Ok(node) => node,
                Err(error) if exists_already(&error) => return Ok(Action::Await),
                Err(error) => return Err(error.into()),
            },
        };
        if fleet::is_down(&node) {
            return Ok(Action::Await);
        }
        let wanted = node::status(name, node.status.as_ref(), self.actor.clock.now());
        if node.status.as_ref() != Some(&wanted) {
            let mut node = Node { status: Some(wanted), ..node };
            node.metadata.managed_fields = None;
            api.replace_status(name, &self.actor.post(), &node).await?;
        }
        Ok(Action::Await)
    }
}
