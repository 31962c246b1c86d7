//! What makes a Pod of a StatefulSet that Pod: its ordinal, and all that follows from it.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};
use kube::ResourceExt;

use crate::revisions::{self, HASH_LABEL};
use crate::template;

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The ordinal in the name of a Pod of the set.
pub(crate) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let name = pod.name_any();
    let ordinal = name.strip_prefix(&set.name_any())?.strip_prefix('-')?;
    let canonical = ordinal == "0" || !ordinal.starts_with(['0', '+', '-']);
    ordinal.parse().ok().filter(|_| canonical)
}

/// The name of the Pod with that ordinal.
pub(crate) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.name_any())
}

/// The Pod with that ordinal, after the template of `revision`.
pub(crate) fn pod(set: &StatefulSet, revision: &ControllerRevision, ordinal: i32) -> Pod {
    let current = || set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let template: PodTemplateSpec = revisions::template(revision).unwrap_or_else(current);
    let mut pod = template::pod(set, &template);
    let name = pod_name(set, ordinal);
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name.clone());
    let labels = pod.labels_mut();
    labels.insert(POD_NAME.to_owned(), name.clone());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    labels.insert(HASH_LABEL.to_owned(), revision.name_any());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    let volumes = spec.volumes.get_or_insert_default();
    for claim in claims(set, ordinal) {
        let template_name = claim.volume;
        volumes.retain(|volume| volume.name != template_name);
        volumes.push(Volume {
            name: template_name,
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.object.name_any(),
                read_only: None,
            }),
            ..Volume::default()
        });
    }
    spec.volumes.take_if(|volumes| volumes.is_empty());
    pod
}

/// A claim of one Pod and the volume that it stands for.
pub(crate) struct Claim {
    pub(crate) volume: String,
    pub(crate) object: PersistentVolumeClaim,
}

/// The claims of the Pod with that ordinal. They outlive the Pod: the next one of that name finds its data.
pub(crate) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<Claim> {
    let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref()).unwrap_or_default();
    let selector = set.spec.as_ref().and_then(|spec| spec.selector.match_labels.clone()).unwrap_or_default();
    let claim = |template: &PersistentVolumeClaim| {
        let volume = template.name_any();
        let mut object = template.clone();
        object.metadata.name = Some(format!("{volume}-{}", pod_name(set, ordinal)));
        object.metadata.namespace = set.namespace();
        object.labels_mut().extend(selector.clone());
        object.status = None;
        Claim { volume, object }
    };
    templates.iter().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_names_that_the_set_would_give_have_an_ordinal() {
        let named = |name: &str| Pod {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Pod::default()
        };
        let set = StatefulSet {
            metadata: ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() },
            ..StatefulSet::default()
        };
        for (name, expect) in
            [("web-0", Some(0)), ("web-12", Some(12)), ("web-01", None), ("web-x", None), ("other-0", None)]
        {
            assert_eq!(ordinal(&set, &named(name)), expect, "{name}");
        }
    }

    #[test]
    fn a_pod_has_its_name_its_host_and_its_claims() {
        let set: StatefulSet = serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": {
            "serviceName": "svc", "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]}}))
        .unwrap();
        let pod = pod(&set, &ControllerRevision::default(), 3);
        let spec = pod.spec.clone().unwrap();
        assert_eq!(
            (pod.name_any().as_str(), spec.hostname.as_deref(), spec.subdomain.as_deref()),
            ("web-3", Some("web-3"), Some("svc"))
        );
        let claim = spec.volumes.unwrap()[0].persistent_volume_claim.clone().unwrap();
        assert_eq!(claim.claim_name, "data-web-3");
        assert_eq!(claims(&set, 3)[0].object.labels()["app"], "a");
    }
}
