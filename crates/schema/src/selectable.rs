//! The fields of built-in kinds that field selectors may use, beside `metadata.name` and `metadata.namespace`.

const POD: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

const CORE_EVENT: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

const EVENT: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

const FIELDS: &[(&str, &str, &[&str])] = &[
    ("", "Pod", POD),
    ("", "Event", CORE_EVENT),
    ("events.k8s.io", "Event", EVENT),
    ("", "Namespace", &["status.phase"]),
    ("", "Node", &["spec.unschedulable"]),
    ("", "ReplicationController", &["status.replicas"]),
    ("", "Secret", &["type"]),
    ("", "Service", &["spec.clusterIP", "spec.type"]),
    ("batch", "Job", &["status.successful"]),
    ("certificates.k8s.io", "CertificateSigningRequest", &["spec.signerName"]),
    ("resource.k8s.io", "ResourceSlice", &["spec.nodeName", "spec.driver"]),
];

/// The selectable fields of a built-in kind.
pub(crate) fn fields(group: &str, kind: &str) -> Vec<String> {
    let entry = FIELDS.iter().find(|(known_group, known_kind, _)| *known_group == group && *known_kind == kind);
    entry.map(|(_, _, fields)| fields.iter().map(|&field| field.to_owned()).collect()).unwrap_or_default()
}
