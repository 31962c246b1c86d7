//! What an operator's author needs most, in one line.

pub use std::process::ExitCode;
pub use std::time::Duration;

pub use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec};
pub use k8s_openapi::api::batch::v1::{CronJob, Job};
pub use k8s_openapi::api::core::v1::{
    ConfigMap, Container, ContainerPort, PersistentVolumeClaim, Pod, PodSpec, PodTemplateSpec, Probe, Secret, Service,
    ServiceAccount, ServicePort, ServiceSpec, TCPSocketAction,
};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
pub use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
pub use kube::ResourceExt;
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use windlass_core::admission::{Hook, Operation, Request, Verdict};
pub use windlass_core::{
    CustomResource, Desired, Event, Health, NoStatus, Operator, Outcome, Part, Pods, Readiness, Statement, Status,
    Truth, Upgrades, Versions, World,
};
pub use windlass_derive::{Resource, Schema};
pub use windlass_runtime::engine::Cleanup;
pub use windlass_runtime::engine::handlers::{Cause, Changed, Failure, HandlerContext, Report, Retry};
pub use windlass_runtime::{Action, Context, Error, ObjectKey, Reconcile};

/// Metadata with a name only; the runtime fills in the rest.
pub fn named(name: impl Into<String>) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() }
}
