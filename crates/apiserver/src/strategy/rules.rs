//! The table of small differences between kinds.

use windlass_schema::Kind;

/// How a kind differs from others in what requests may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table of independent facts")]
pub(crate) struct Rules {
    /// A PUT to a name that is not there creates the object.
    pub(crate) create_on_update: bool,
    /// A PUT without a version replaces whatever is there.
    pub(crate) unconditional_update: bool,
    /// The metadata counts changes of what is wanted.
    pub(crate) has_generation: bool,
    /// A DELETE answers with the object instead of a `Status`.
    pub(crate) returns_deleted: bool,
    /// A DELETE that does not say otherwise leaves the dependents alone.
    pub(crate) orphans_by_default: bool,
    /// Others may depend on the object.
    pub(crate) has_dependents: bool,
}

/// The rules of `kind`.
pub(crate) fn rules(kind: &Kind) -> Rules {
    let name = (kind.group.as_str(), kind.kind.as_str());
    let builtin = kind.is_builtin();
    Rules {
        create_on_update: builtin && CREATE_ON_UPDATE.contains(&name),
        unconditional_update: builtin && !CONDITIONAL_UPDATE.contains(&name),
        has_generation: !builtin || GENERATION.contains(&name),
        returns_deleted: builtin && RETURNS_DELETED.contains(&name),
        orphans_by_default: matches!(name, ("", "ReplicationController") | ("batch", "Job")),
        has_dependents: kind.kind != "Event" || !builtin,
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

const CREATE_ON_UPDATE: [(&str, &str); 12] = [
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Service"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("coordination.k8s.io", "LeaseCandidate"),
    ("node.k8s.io", "RuntimeClass"),
    (RBAC, "ClusterRole"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "Role"),
    (RBAC, "RoleBinding"),
];

const CONDITIONAL_UPDATE: [(&str, &str); 18] = [
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("coordination.k8s.io", "Lease"),
    ("coordination.k8s.io", "LeaseCandidate"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

const GENERATION: [(&str, &str); 25] = [
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("policy", "PodDisruptionBudget"),
    ("resource.k8s.io", "DeviceClass"),
    ("scheduling.k8s.io", "PriorityClass"),
];

const RETURNS_DELETED: [(&str, &str); 17] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("resource.k8s.io", "ResourceSlice"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
];
