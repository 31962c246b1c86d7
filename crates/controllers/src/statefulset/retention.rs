//! Whether the claims of a StatefulSet go with it, with their Pods, or stay.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};

/// The owners that the claim should have, if not those that it has. `pod` is its Pod, `is_surplus` whether the set wants
/// that Pod no longer.
pub(crate) fn owners(
    set: &StatefulSet,
    claim: &PersistentVolumeClaim,
    pod: Option<&Pod>,
    is_surplus: bool,
) -> Option<Vec<OwnerReference>> {
    let known = claim.owner_references();
    let goes_with_pod = policy(set).1 && is_surplus;
    let mut wanted: Vec<OwnerReference> =
        known.iter().filter(|owner| !is_set(set, owner) && !is_pod(pod, owner)).cloned().collect();
    if goes_with_pod {
        wanted.extend(pod.and_then(|pod| pod.owner_ref(&())));
    } else if policy(set).0 {
        wanted.extend(set.owner_ref(&()));
    }
    let same =
        wanted.len() == known.len() && wanted.iter().all(|owner| known.iter().any(|other| other.uid == owner.uid));
    (!same).then_some(wanted)
}

/// Whether claims go when the set is deleted, and when it shrinks.
fn policy(set: &StatefulSet) -> (bool, bool) {
    let policy = set.spec.as_ref().and_then(|spec| spec.persistent_volume_claim_retention_policy.as_ref());
    let deletes = |word: Option<&String>| word.is_some_and(|word| word == "Delete");
    (
        deletes(policy.and_then(|policy| policy.when_deleted.as_ref())),
        deletes(policy.and_then(|policy| policy.when_scaled.as_ref())),
    )
}

fn is_set(set: &StatefulSet, owner: &OwnerReference) -> bool {
    owner.kind == "StatefulSet" && owner.name == set.name_any()
}

/// Also an earlier Pod of that name: it left a claim that its successor needs.
fn is_pod(pod: Option<&Pod>, owner: &OwnerReference) -> bool {
    owner.kind == "Pod" && pod.is_some_and(|pod| pod.name_any() == owner.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_follow_the_policy() {
        let check = |policy: (&str, &str), known: &[&str], is_surplus: bool, expect: Option<&[&str]>| {
            let set: StatefulSet = serde_json::from_value(json!({"metadata": {"name": "db", "uid": "set"}, "spec": {
                "selector": {}, "serviceName": "db", "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy.0, "whenScaled": policy.1}}}))
            .unwrap();
            let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "db-1", "uid": "pod"}})).unwrap();
            let reference = |uid: &&str| match *uid {
                "set" => json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set"}),
                "mine" => json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "mine"}),
                uid => json!({"apiVersion": "v1", "kind": "Pod", "name": "db-1", "uid": uid}),
            };
            let known: Vec<_> = known.iter().map(reference).collect();
            let claim = json!({"metadata": {"name": "data-db-1", "ownerReferences": known}});
            let told = owners(&set, &serde_json::from_value(claim).unwrap(), Some(&pod), is_surplus);
            let told = told.map(|owners| owners.into_iter().map(|owner| owner.uid).collect::<Vec<_>>());
            let expect = expect.map(|uids| uids.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>());
            assert_eq!(told, expect, "{policy:?} {known:?} {is_surplus}");
        };
        check(("Retain", "Retain"), &["mine"], true, None);
        check(("Retain", "Retain"), &["mine", "set"], false, Some(&["mine"]));
        check(("Delete", "Retain"), &["mine"], false, Some(&["mine", "set"]));
        check(("Delete", "Retain"), &["set"], true, None);
        check(("Retain", "Delete"), &[], true, Some(&["pod"]));
        check(("Retain", "Delete"), &["pod"], false, Some(&[]));
        check(("Retain", "Delete"), &["earlier"], false, Some(&[]));
        check(("Delete", "Delete"), &["set"], true, Some(&["pod"]));
        check(("Delete", "Delete"), &["pod"], false, Some(&["set"]));
    }
}
