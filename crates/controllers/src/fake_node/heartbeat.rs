//! The leases of the nodes, renewed as a kubelet does: who looks for dead nodes finds these alive.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Patch, Resource};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_runtime::{Action, Attempt, Error, Informer, ObjectKey, Process};

use super::fleet;
use crate::actor::{Actor, exists_already, is_gone};

const NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Keeps the leases.
pub(super) struct Heartbeat {
    pub(super) actor: Actor,
    pub(super) nodes: Informer<Node>,
}

impl Process for Heartbeat {
    type Key = String;

    async fn process(&self, name: &String, _: &Attempt) -> Result<Action, Error> {
        if let Some(node) = self.nodes.get(&ObjectKey::cluster(name)).filter(|node| !fleet::is_down(node)) {
            self.renew(&node).await?;
        }
        Ok(Action::Recheck(RENEW_EVERY))
    }
}

impl Heartbeat {
    async fn renew(&self, node: &Node) -> Result<(), kube::Error> {
        let leases: Api<Lease> = self.actor.api(Some(NAMESPACE));
        let (name, now) = (node.name_any(), MicroTime(self.actor.clock.now()));
        let patch = json!({"spec": {"renewTime": now}});
        match leases.patch(&name, &self.actor.patch(), &Patch::Merge(patch)).await {
            Err(error) if is_gone(&error) => {}
            other => return other.map(drop),
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(NAMESPACE.to_owned()),
                owner_references: node.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        };
        match self.actor.create(&lease).await {
            Err(error) if !exists_already(&error) => Err(error),
            _ => Ok(()),
        }
    }
}
