//! What an object owns, directly or through what it owns.

use kube::Client;
use serde_json::Value;

use crate::commands::request;
use crate::failure::Failure;
use crate::resource::Catalog;

/// Steps from a resource to its Pods: Deployment, ReplicaSet, Pod, and room for an operator of operators.
const DEPTH_MAX: usize = 5;
/// Kinds that are looked through; all other kinds own no Pods.
const CARRIERS: [&str; 7] =
    ["deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "pods", "services"];

/// The objects of `kind` below an owner.
pub(crate) async fn below(
    client: &Client,
    catalog: &Catalog,
    owner: &Value,
    kind: &str,
) -> Result<Vec<Value>, Failure> {
    let namespace = owner["metadata"]["namespace"].as_str();
    let mut candidates = Vec::new();
    for carrier in CARRIERS {
        let resource = catalog.find(carrier)?;
        let list = request::get(client, &resource.path(namespace, None), &[]).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        candidates.extend(items.into_iter().map(|item| (resource.kind.clone(), item)));
    }
    Ok(descend(&candidates, owner, kind))
}

fn descend(candidates: &[(String, Value)], owner: &Value, kind: &str) -> Vec<Value> {
    let mut owners = vec![owner["metadata"]["uid"].clone()];
    let mut found = Vec::new();
    for _ in 0..DEPTH_MAX {
        let owned: Vec<&(String, Value)> = candidates.iter().filter(|(_, item)| owned_by(item, &owners)).collect();
        found.extend(owned.iter().filter(|(own, _)| own == kind).map(|(_, item)| item.clone()));
        owners = owned.iter().map(|(_, item)| item["metadata"]["uid"].clone()).collect();
    }
    found
}

fn owned_by(object: &Value, owners: &[Value]) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references.map(|reference| &reference["uid"]).any(|uid| owners.contains(uid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_are_found_through_deployment_and_replica_set() {
        let object = |kind: &str, uid: &str, owner: &str| {
            (kind.to_owned(), json!({"metadata": {"uid": uid, "ownerReferences": [{"uid": owner}]}}))
        };
        let candidates = [
            object("Deployment", "d", "m"),
            object("ReplicaSet", "r", "d"),
            object("Pod", "p", "r"),
            object("Pod", "q", "other"),
        ];
        let pods = descend(&candidates, &json!({"metadata": {"uid": "m"}}), "Pod");
        assert_eq!(pods.iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap()).collect::<Vec<_>>(), ["p"]);
    }
}
