//! The rules for objects of built-in kinds that users meet: names, what is required, what may not change.

mod access;
mod address;
mod admission;
mod admission_policy;
mod affinity;
mod autoscaler;
mod batch;
mod container;
mod cursor;
mod data;
mod environment;
mod event;
mod job_policy;
mod kinds;
mod limits;
mod metadata;
mod mount;
mod network;
mod path;
mod persistent_volume;
mod pod;
mod pod_dns;
mod pod_join;
mod pod_notes;
mod pod_resize;
mod pod_resources;
mod pod_security;
mod pod_sysctl;
mod pod_update;
mod probe;
mod projection;
mod quota;
mod resources;
mod restart;
mod schedule;
mod selector;
mod service;
mod spread;
mod status;
mod storage;
mod toleration;
mod volume;
mod warnings;
mod windows;
mod workload;

use serde_json::Value;

use crate::{FieldError, Kind};
use cursor::At;

pub use metadata::validate_metadata;
pub use pod_join::validate_pod_joining;
pub use pod_notes::{APP_ARMOR, app_armor_profile};
pub use pod_resize::validate_pod_resize;
pub use warnings::{builtin_status_warnings, builtin_warnings};

/// Checks a new object of a built-in kind, and what changed against the `old` one on an update.
///
/// The object has its canonical form and its defaults. Metadata is included ([`validate_metadata`]); objects of custom
/// kinds are checked for their metadata only.
pub fn validate_builtin(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = validate_metadata(kind, new, old);
    if !kind.is_builtin() {
        return errors;
    }
    let new = At::root(new);
    let old = old.map(At::root);
    let old = old.as_ref();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::pod(&new, old, &mut errors),
        ("", "PodTemplate") => pod::template(&new.member("template"), &mut errors),
        ("", "Service") => service::service(&new, old, &mut errors),
        ("", "Endpoints") => service::endpoints(&new, &mut errors),
        ("discovery.k8s.io", "EndpointSlice") => service::endpoint_slice(&new, old, &mut errors),
        ("", "ConfigMap") => data::config_map(&new, old, &mut errors),
        ("", "Secret") => data::secret(&new, old, &mut errors),
        ("", "PersistentVolumeClaim") => storage::claim(&new, old, &mut errors),
        ("", "PersistentVolume") => persistent_volume::check(&new, old, &mut errors),
        ("storage.k8s.io", "StorageClass") => storage::class(&new, old, &mut errors),
        ("", "ReplicationController") => workload::replication_controller(&new, &mut errors),
        ("apps", "Deployment") => workload::deployment(&new, old, &mut errors),
        ("apps", "ReplicaSet") => workload::replica_set(&new, old, &mut errors),
        ("apps", "StatefulSet") => workload::stateful_set(&new, old, &mut errors),
        ("apps", "DaemonSet") => workload::daemon_set(&new, old, &mut errors),
        ("apps", "ControllerRevision") => workload::controller_revision(&new, old, &mut errors),
        ("batch", "Job") => batch::job(&new, old, &mut errors),
        ("batch", "CronJob") => batch::cron_job(&new, old, &mut errors),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => access::role(&new, kind.namespaced, &mut errors),
        ("rbac.authorization.k8s.io", _) => access::binding(&new, old, kind.namespaced, &mut errors),
        _ => kinds::check(kind, &new, old, &mut errors),
    }
    errors
}

/// Checks an object of a built-in kind of which only the status was written.
pub fn validate_builtin_status(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = validate_metadata(kind, new, old);
    let new = At::root(new);
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => service::balancer(&new, &mut errors),
        ("", "Pod") => pod::status(&new, &mut errors),
        _ => status::counts(kind, &new, old.map(At::root).as_ref(), &mut errors),
    }
    errors
}

/// Checks where a webhook is: the `clientConfig` at `path`.
pub fn validate_webhook_client(path: &str, config: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    admission::client_config(&At { path: path.to_owned(), value: config }, &mut errors);
    errors
}

#[cfg(test)]
mod pod_place_tests;
#[cfg(test)]
mod pod_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod update_tests;
#[cfg(test)]
mod workload_tests;
