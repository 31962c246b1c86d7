//! The readiness of what runs nothing itself.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde_json::Value;

use super::Readiness;

/// The groups of Kubernetes itself. What has no rule of its own there has no readiness to speak of.
const GROUPS: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

pub(super) fn is_of_kubernetes(group: &str) -> bool {
    GROUPS.contains(&group)
}

pub(super) fn claim(claim: &PersistentVolumeClaim) -> Readiness {
    match claim.status.as_ref().and_then(|status| status.phase.as_deref()) {
        Some("Bound") => Readiness::Ready,
        Some("Lost") => Readiness::Failed("its volume is lost".into()),
        _ => Readiness::NotYet("it is not bound to a volume".into()),
    }
}

pub(super) fn service(service: &Service) -> Readiness {
    let spec = service.spec.clone().unwrap_or_default();
    match spec.type_.as_deref() {
        Some("ExternalName") => Readiness::Ready,
        Some("LoadBalancer") => {
            let status = service.status.clone().unwrap_or_default();
            let has_address =
                status.load_balancer.and_then(|balancer| balancer.ingress).is_some_and(|it| !it.is_empty());
            Readiness::when(has_address, "it has no address of a load balancer")
        }
        _ => Readiness::when(spec.cluster_ip.is_some_and(|it| !it.is_empty()), "it has no address"),
    }
}

pub(super) fn definition(definition: &CustomResourceDefinition) -> Readiness {
    let conditions = definition.status.clone().and_then(|status| status.conditions).unwrap_or_default();
    let find = |type_: &str, status: &str| conditions.iter().find(|it| it.type_ == type_ && it.status == status);
    if let Some(refused) = find("NamesAccepted", "False") {
        return Readiness::Failed(refused.message.clone().unwrap_or_else(|| "its names are taken".into()));
    }
    Readiness::when(find("Established", "True").is_some(), "it is not served")
}

/// An object of somebody's own kind: ready when it says so of its present generation.
pub(super) fn custom<K: Serialize>(object: &K) -> Readiness {
    let object = serde_json::to_value(object).unwrap_or_default();
    let (status, generation) = (&object["status"], object["metadata"]["generation"].as_i64());
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let find = |type_: &str| conditions.iter().find(|condition| condition["type"] == type_);
    let says = |condition: &Value| condition["message"].as_str().unwrap_or_default().to_owned();
    let is_current = |condition: &Value| {
        let observed = condition["observedGeneration"].as_i64().or(status["observedGeneration"].as_i64());
        observed.is_none() || observed >= generation
    };
    if let Some(stalled) = find("Stalled").filter(|it| it["status"] == "True" && is_current(it)) {
        return Readiness::Failed(says(stalled));
    }
    match find("Ready") {
        None => Readiness::NotYet("it has no condition Ready".into()),
        Some(ready) if !is_current(ready) => Readiness::NotYet("its change is not taken up yet".into()),
        Some(ready) => Readiness::when(ready["status"] == "True", says(ready)),
    }
}
