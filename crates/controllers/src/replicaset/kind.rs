//! The two kinds that keep a number of Pods: ReplicaSet and its older form, ReplicationController.

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_runtime::Object;

use super::decide::Wanted;
use crate::actor::Namespaced;

/// A kind that keeps a number of equal Pods.
pub(crate) trait Replicated: Object + Namespaced {
    /// The name of its controller.
    const CONTROLLER: &'static str;

    /// How many Pods it asks for, and for how many seconds they must be ready to count.
    fn numbers(&self) -> (Option<i32>, Option<i32>);

    /// What the object asks for.
    fn wanted(&self) -> Wanted {
        let (replicas, min_ready_seconds) = self.numbers();
        Wanted {
            replicas: replicas.unwrap_or(1),
            min_ready_seconds: min_ready_seconds.unwrap_or(0),
            generation: self.meta().generation,
        }
    }

    /// The Pods that it may own.
    fn selector(&self) -> LabelSelector;

    /// What its Pods look like.
    fn template(&self) -> Option<&PodTemplateSpec>;

    /// Its status.
    fn status(&self) -> ReplicaSetStatus;

    /// The object with another status.
    fn with_status(&self, status: ReplicaSetStatus) -> Self;
}

impl Replicated for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";

    fn numbers(&self) -> (Option<i32>, Option<i32>) {
        self.spec.as_ref().map(|spec| (spec.replicas, spec.min_ready_seconds)).unwrap_or_default()
    }

    fn selector(&self) -> LabelSelector {
        self.spec.as_ref().map(|spec| spec.selector.clone()).unwrap_or_default()
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn status(&self) -> ReplicaSetStatus {
        self.status.clone().unwrap_or_default()
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        Self { status: Some(status), ..self.clone() }
    }
}

impl Replicated for ReplicationController {
    const CONTROLLER: &'static str = "replication-controller";

    fn numbers(&self) -> (Option<i32>, Option<i32>) {
        self.spec.as_ref().map(|spec| (spec.replicas, spec.min_ready_seconds)).unwrap_or_default()
    }

    fn selector(&self) -> LabelSelector {
        let match_labels = self.spec.as_ref().and_then(|spec| spec.selector.clone());
        LabelSelector { match_labels, match_expressions: None }
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn status(&self) -> ReplicaSetStatus {
        let status = self.status.clone().unwrap_or_default();
        let conditions = status.conditions.map(|conditions| conditions.into_iter().map(newer).collect());
        ReplicaSetStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            terminating_replicas: None,
            observed_generation: status.observed_generation,
            conditions,
        }
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        let status = ReplicationControllerStatus {
            replicas: status.replicas,
            fully_labeled_replicas: status.fully_labeled_replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
            observed_generation: status.observed_generation,
            conditions: status.conditions.map(|conditions| conditions.into_iter().map(older).collect()),
        };
        Self { status: Some(status), ..self.clone() }
    }
}

fn newer(condition: ReplicationControllerCondition) -> ReplicaSetCondition {
    let ReplicationControllerCondition { last_transition_time, message, reason, status, type_ } = condition;
    ReplicaSetCondition { last_transition_time, message, reason, status, type_ }
}

fn older(condition: ReplicaSetCondition) -> ReplicationControllerCondition {
    let ReplicaSetCondition { last_transition_time, message, reason, status, type_ } = condition;
    ReplicationControllerCondition { last_transition_time, message, reason, status, type_ }
}
