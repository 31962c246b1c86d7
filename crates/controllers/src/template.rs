//! From the template of a controller to a Pod.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use crate::owners;

/// The longest name prefix that leaves room for the random part of a Pod's name.
const PREFIX_LENGTH_MAX: usize = 253 - 5;

/// A Pod after `template`, controlled by `owner`, whose name the server completes.
pub(crate) fn pod<K: Resource<DynamicType = ()>>(owner: &K, template: &PodTemplateSpec) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    let mut prefix = format!("{}-", owner.name_any());
    prefix.truncate(PREFIX_LENGTH_MAX);
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(prefix),
            namespace: owner.namespace(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![owners::controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
