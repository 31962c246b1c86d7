//! The lease of the node, renewed as a kubelet does: who looks for dead nodes finds this one alive.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::{Patch, Resource};
use serde_json::json;
use windlass_runtime::{Action, Attempt, Error, Informer, ObjectKey, Process};

use super::NODE;
use crate::actor::{Actor, exists_already, is_gone};

const NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Keeps the lease.
pub(super) struct Heartbeat {
    pub(super) actor: Actor,
    pub(super) nodes: Informer<Node>,
}

impl Process for Heartbeat {
    type Key = ();

    async fn process(&self, (): &(), _: &Attempt) -> Result<Action, Error> {
        if let Some(node) = self.nodes.get(&ObjectKey::cluster(NODE)) {
            self.renew(&node).await?;
        }
        Ok(Action::Recheck(RENEW_EVERY))
    }
}

impl Heartbeat {
    async fn renew(&self, node: &Node) -> Result<(), kube::Error> {
        let leases: Api<Lease> = self.actor.api(Some(NAMESPACE));
        let now = MicroTime(self.actor.clock.now());
        let patch = json!({"spec": {"renewTime": now}});
        match leases.patch(NODE, &self.actor.patch(), &Patch::Merge(patch)).await {
            Err(error) if is_gone(&error) => {}
            other => return other.map(drop),
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(NODE.to_owned()),
                namespace: Some(NAMESPACE.to_owned()),
                owner_references: node.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(NODE.to_owned()),
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
