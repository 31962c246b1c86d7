//! Which Pods of a resource are of the present templates of its workloads.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::PartialObjectMeta;

use crate::pods::Pods;
use crate::world::World;

/// The number of the revision, on a Deployment and on each of its ReplicaSets.
const DEPLOYMENT_REVISION: &str = "deployment.kubernetes.io/revision";
/// The revision of its StatefulSet that a Pod is of.
const POD_REVISION: &str = "controller-revision-hash";

/// What makes a Pod of a workload one of the present template.
enum Newest {
    /// All of them are.
    All,
    /// None is, as far as anybody can tell.
    None,
    /// Those with this label.
    Of(String),
}

impl World {
    /// The active Pods that `owner` owns, directly or through workloads, and that are of the present template of their Deployment
    /// or StatefulSet. While the controller of a workload has not taken up its last change, none of its Pods is.
    pub fn newest_pods_of(&self, owner: &impl Resource) -> Pods {
        let newest = self.newest_of(owner);
        self.pods_of(owner).active().only(|pod| match controller(&pod.metadata).and_then(|uid| newest.get(uid)) {
            None | Some(Newest::All) => true,
            Some(Newest::None) => false,
            Some(Newest::Of(revision)) => {
                pod.metadata.labels.as_ref().and_then(|labels| labels.get(POD_REVISION)) == Some(revision)
            }
        })
    }

    /// By the uid of what Pods belong to.
    fn newest_of(&self, owner: &impl Resource) -> HashMap<String, Newest> {
        let mut all = HashMap::new();
        for deployment in self.known_children::<Deployment>(owner) {
            let number = present_revision(&deployment);
            for set in self.replica_sets(&deployment.metadata) {
                let is_present = number.is_some() && revision(&set) == number;
                all.extend(set.uid.map(|uid| (uid, if is_present { Newest::All } else { Newest::None })));
            }
        }
        for set in self.known_children::<StatefulSet>(owner) {
            let status = set.status.clone().unwrap_or_default();
            let newest = match status.update_revision {
                _ if status.observed_generation < set.metadata.generation => Newest::None,
                Some(revision) => Newest::Of(revision),
                None => Newest::All,
            };
            all.extend(set.metadata.uid.clone().map(|uid| (uid, newest)));
        }
        all
    }

    /// The metadata of the ReplicaSets of a Deployment, in whichever form they are known.
    fn replica_sets(&self, deployment: &ObjectMeta) -> Vec<ObjectMeta> {
        let owner = PartialObjectMeta::<Deployment> { metadata: deployment.clone(), ..Default::default() };
        let whole = self.known_children::<ReplicaSet>(&owner).into_iter().map(|set| set.metadata.clone());
        let short = self.known_children::<PartialObjectMeta<ReplicaSet>>(&owner);
        whole.chain(short.into_iter().map(|set| set.metadata.clone())).collect()
    }
}

/// The number of the ReplicaSet that has the present template, if its controller has taken that up.
fn present_revision(deployment: &Deployment) -> Option<String> {
    let observed = deployment.status.as_ref().and_then(|status| status.observed_generation);
    revision(&deployment.metadata).filter(|_| observed >= deployment.metadata.generation)
}

fn revision(meta: &ObjectMeta) -> Option<String> {
    let annotations: Option<&BTreeMap<String, String>> = meta.annotations.as_ref();
    annotations?.get(DEPLOYMENT_REVISION).cloned()
}

fn controller(meta: &ObjectMeta) -> Option<&String> {
    let owners = meta.owner_references.iter().flatten();
    owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| &owner.uid)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    fn meta(uid: &str, owner: &str, revision: &str) -> Value {
        json!({"name": uid, "uid": uid, "generation": 2, "annotations": {DEPLOYMENT_REVISION: revision},
            "labels": {POD_REVISION: revision},
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": owner, "uid": owner, "controller": true}]})
    }

    /// Two ReplicaSets and a StatefulSet, each with Pods: `observed` is the generation that their controllers have seen.
    fn newest(number: &str, observed: i64) -> Vec<String> {
        let status = json!({"observedGeneration": observed, "replicas": 1, "updateRevision": "4"});
        let set = json!({"metadata": meta("s", "o", ""), "status": status});
        let deployment = json!({"metadata": meta("d", "o", number), "status": {"observedGeneration": observed}});
        let short = |uid: &str, revision: &str| PartialObjectMeta::<ReplicaSet> {
            metadata: object(meta(uid, "d", revision)),
            ..Default::default()
        };
        let pod =
            |uid: &str, owner: &str, revision: &str| -> Pod { object(json!({"metadata": meta(uid, owner, revision)})) };
        let world = World::new()
            .with::<Deployment>(object(deployment))
            .with::<StatefulSet>(object(set))
            .with(short("r1", "1"))
            .with(short("r2", "2"))
            .with(pod("old", "r1", ""))
            .with(pod("new", "r2", ""))
            .with(pod("s-old", "s", "3"))
            .with(pod("s-new", "s", "4"))
            .with(pod("direct", "o", ""));
        world.newest_pods_of(&object::<Pod>(json!({"metadata": {"name": "o", "uid": "o"}}))).names()
    }

    #[test]
    fn pods_are_of_the_present_template_once_its_controller_has_taken_it_up() {
        assert_eq!(newest("2", 2), ["direct", "new", "s-new"]);
        assert_eq!(newest("1", 2), ["direct", "old", "s-new"]);
        assert_eq!(newest("3", 2), ["direct", "s-new"]);
        assert_eq!(newest("2", 1), ["direct"]);
    }
}
