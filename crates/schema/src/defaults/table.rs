//! Defaults that are a value for a field that is absent.

use serde_json::{Map, Value};

/// A default value.
#[derive(Clone, Copy)]
pub(super) enum Literal {
    Text(&'static str),
    Int(i64),
    Bool(bool),
    /// `{}`.
    Empty,
}

use self::Literal::{Bool, Empty, Int, Text};

impl Literal {
    pub(super) fn to_value(self) -> Value {
        match self {
            Text(text) => text.into(),
            Int(int) => int.into(),
            Bool(bool) => bool.into(),
            Empty => Value::Object(Map::new()),
        }
    }
}

type Entries = &'static [(&'static str, Literal)];

/// The permissions of files in volumes, 0644.
const FILE_MODE: Literal = Int(0o644);

const RBAC: &str = "rbac.authorization.k8s.io";

const WEBHOOK: Entries = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Empty),
    ("objectSelector", Empty),
    ("timeoutSeconds", Int(10)),
];

const MUTATING_WEBHOOK: Entries = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Empty),
    ("objectSelector", Empty),
    ("timeoutSeconds", Int(10)),
    ("reinvocationPolicy", Text("Never")),
];

const MATCH_RESOURCES: Entries =
    &[("matchPolicy", Text("Equivalent")), ("namespaceSelector", Empty), ("objectSelector", Empty)];

const POD_SPEC: Entries = &[
    ("dnsPolicy", Text("ClusterFirst")),
    ("restartPolicy", Text("Always")),
    ("securityContext", Empty),
    ("terminationGracePeriodSeconds", Int(30)),
    ("schedulerName", Text("default-scheduler")),
];

const PROBE: Entries = &[
    ("timeoutSeconds", Int(1)),
    ("periodSeconds", Int(10)),
    ("successThreshold", Int(1)),
    ("failureThreshold", Int(3)),
];

const CONTAINER: Entries =
    &[("terminationMessagePath", Text("/dev/termination-log")), ("terminationMessagePolicy", Text("File"))];

const CRON_JOB_SPEC: Entries = &[
    ("concurrencyPolicy", Text("Allow")),
    ("suspend", Bool(false)),
    ("successfulJobsHistoryLimit", Int(3)),
    ("failedJobsHistoryLimit", Int(1)),
];

const CSI_DRIVER_SPEC: Entries = &[
    ("attachRequired", Bool(true)),
    ("podInfoOnMount", Bool(false)),
    ("storageCapacity", Bool(false)),
    ("fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    ("requiresRepublish", Bool(false)),
    ("seLinuxMount", Bool(false)),
];

/// The entries of every struct, by its OpenAPI name without `io.k8s.`.
const TABLE: &[(&str, Entries)] = &[
    ("api.core.v1.PodSpec", POD_SPEC),
    ("api.core.v1.Container", CONTAINER),
    ("api.core.v1.EphemeralContainerCommon", CONTAINER),
    ("api.core.v1.Probe", PROBE),
    ("api.core.v1.HTTPGetAction", &[("path", Text("/")), ("scheme", Text("HTTP"))]),
    ("api.core.v1.ObjectFieldSelector", &[("apiVersion", Text("v1"))]),
    ("api.core.v1.SecretVolumeSource", &[("defaultMode", FILE_MODE)]),
    ("api.core.v1.ConfigMapVolumeSource", &[("defaultMode", FILE_MODE)]),
    ("api.core.v1.DownwardAPIVolumeSource", &[("defaultMode", FILE_MODE)]),
    ("api.core.v1.ProjectedVolumeSource", &[("defaultMode", FILE_MODE)]),
    ("api.core.v1.ServiceAccountTokenProjection", &[("expirationSeconds", Int(3600))]),
    ("api.core.v1.HostPathVolumeSource", &[("type", Text(""))]),
    ("api.core.v1.Secret", &[("type", Text("Opaque"))]),
    ("api.core.v1.PersistentVolumeStatus", &[("phase", Text("Pending"))]),
    ("api.core.v1.PersistentVolumeClaimStatus", &[("phase", Text("Pending"))]),
    ("api.core.v1.PersistentVolumeClaimSpec", &[("volumeMode", Text("Filesystem"))]),
    ("api.core.v1.NamespaceStatus", &[("phase", Text("Active"))]),
    ("api.core.v1.EndpointPort", &[("protocol", Text("TCP"))]),
    (
        "api.apps.v1.DeploymentSpec",
        &[("replicas", Int(1)), ("revisionHistoryLimit", Int(10)), ("progressDeadlineSeconds", Int(600))],
    ),
    ("api.apps.v1.ReplicaSetSpec", &[("replicas", Int(1))]),
    ("api.apps.v1.DaemonSetSpec", &[("revisionHistoryLimit", Int(10))]),
    (
        "api.apps.v1.StatefulSetSpec",
        &[
            ("replicas", Int(1)),
            ("revisionHistoryLimit", Int(10)),
            ("podManagementPolicy", Text("OrderedReady")),
            ("persistentVolumeClaimRetentionPolicy", Empty),
        ],
    ),
    (
        "api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", Text("Retain")), ("whenScaled", Text("Retain"))],
    ),
    ("api.batch.v1.CronJobSpec", CRON_JOB_SPEC),
    ("api.batch.v1.PodFailurePolicyOnPodConditionsPattern", &[("status", Text("True"))]),
    ("api.autoscaling.v1.HorizontalPodAutoscalerSpec", &[("minReplicas", Int(1))]),
    ("api.autoscaling.v2.HorizontalPodAutoscalerSpec", &[("minReplicas", Int(1))]),
    ("api.rbac.v1.RoleRef", &[("apiGroup", Text(RBAC))]),
    ("api.networking.v1.NetworkPolicyPort", &[("protocol", Text("TCP"))]),
    ("api.networking.v1.IngressClassParametersReference", &[("scope", Text("Cluster"))]),
    ("api.storage.v1.StorageClass", &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))]),
    ("api.storage.v1.CSIDriverSpec", CSI_DRIVER_SPEC),
    ("api.admissionregistration.v1.ValidatingWebhook", WEBHOOK),
    ("api.admissionregistration.v1.MutatingWebhook", MUTATING_WEBHOOK),
    ("api.admissionregistration.v1.Rule", &[("scope", Text("*"))]),
    ("api.admissionregistration.v1.MatchResources", MATCH_RESOURCES),
    ("api.admissionregistration.v1.ValidatingAdmissionPolicySpec", &[("failurePolicy", Text("Fail"))]),
    ("api.admissionregistration.v1.MutatingAdmissionPolicySpec", &[("failurePolicy", Text("Fail"))]),
    ("api.admissionregistration.v1.ServiceReference", &[("port", Int(443))]),
    ("apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", &[("port", Int(443))]),
    ("kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference", &[("port", Int(443))]),
    ("api.discovery.v1.EndpointPort", &[("name", Text("")), ("protocol", Text("TCP"))]),
    ("api.scheduling.v1.PriorityClass", &[("preemptionPolicy", Text("PreemptLowerPriority"))]),
    ("api.authentication.v1.TokenRequestSpec", &[("expirationSeconds", Int(3600))]),
    ("api.flowcontrol.v1.FlowSchemaSpec", &[("matchingPrecedence", Int(1000))]),
    (
        "api.flowcontrol.v1.ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Int(0)), ("lendablePercent", Int(0))],
    ),
    (
        "api.flowcontrol.v1.LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Int(30)), ("lendablePercent", Int(0))],
    ),
    (
        "api.flowcontrol.v1.QueuingConfiguration",
        &[("handSize", Int(8)), ("queues", Int(64)), ("queueLengthLimit", Int(50))],
    ),
];

/// The entries of a struct, by its OpenAPI name without `io.k8s.`.
pub(super) fn entries(name: &str) -> Entries {
    TABLE.iter().find(|(known, _)| *known == name).map(|(_, entries)| *entries).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::TABLE;
    use crate::structs;

    #[test]
    fn every_entry_names_a_field_of_a_struct() {
        for (name, entries) in TABLE {
            let known = structs::find(&format!("io.k8s.{name}")).expect(name);
            for (field, _) in *entries {
                assert!(known.fields.iter().any(|known| known.name == *field), "{name}.{field}");
            }
        }
    }
}
