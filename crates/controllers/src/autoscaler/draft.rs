//! The status that an autoscaler is about to get.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The status that an autoscaler is about to get.
pub(super) struct Draft {
    pub(super) status: HorizontalPodAutoscalerStatus,
    now: Timestamp,
}

impl Draft {
    /// Begins with the status that it has.
    pub(super) fn of(autoscaler: &HorizontalPodAutoscaler, now: Timestamp) -> Self {
        Self { status: autoscaler.status.clone().unwrap_or_default(), now }
    }

    /// Sets a condition; the time of its transition stays while its status does.
    pub(super) fn condition(&mut self, type_: &str, holds: bool, reason: &str, message: impl Into<String>) {
        let status = if holds { "True" } else { "False" };
        let conditions = self.status.conditions.get_or_insert_default();
        let index = conditions.iter().position(|condition| condition.type_ == type_).unwrap_or_else(|| {
            let type_ = type_.to_owned();
            conditions.push(HorizontalPodAutoscalerCondition { type_, ..HorizontalPodAutoscalerCondition::default() });
            conditions.len() - 1
        });
        let condition = &mut conditions[index];
        if condition.status != status {
            condition.last_transition_time = Some(Time(self.now));
        }
        condition.status = status.to_owned();
        condition.reason = Some(reason.to_owned());
        condition.message = Some(message.into());
    }

    /// Sets how many replicas there are and what the metrics are; who wants another number says so.
    pub(super) fn observed(&mut self, current: i32, metrics: Vec<MetricStatus>) {
        self.status.current_replicas = Some(current);
        self.status.current_metrics = (!metrics.is_empty()).then_some(metrics);
    }

    /// Notes that the target was changed.
    pub(super) fn rescaled(&mut self) {
        self.status.last_scale_time = Some(Time(self.now));
    }
}
