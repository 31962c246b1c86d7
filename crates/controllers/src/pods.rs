//! Facts about a Pod that several controllers ask for.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

/// Whether the Pod has ended for good and will not run again.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the Pod counts towards the replicas of its controller.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// Whether somebody has asked for the Pod to be deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// The phase of the Pod; a Pod without status is pending.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The condition of that type, if the Pod has it.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether the Pod is ready to serve.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|condition| condition.status == "True")
}

/// Since when the Pod is ready, if it is.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let condition = condition(pod, "Ready").filter(|condition| condition.status == "True")?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// When the Pod will have been ready for `min_ready_seconds`: `None` while it is not ready.
pub(crate) fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    if !is_ready(pod) {
        return None;
    }
    if min_ready_seconds == 0 {
        return Some(Timestamp::MIN);
    }
    let since = ready_since(pod)?;
    since.checked_add(SignedDuration::from_secs(i64::from(min_ready_seconds))).ok()
}

/// The node that the Pod is bound to.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}
