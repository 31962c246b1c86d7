//! A Pod is taken away by the cluster: first the condition that says why, then the deletion.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;

use crate::actor::{Actor, is_gone};
use crate::pods;

/// The condition of a Pod that is about to be taken away.
const TARGET: &str = "DisruptionTarget";

/// Why a Pod is taken away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

/// Marks the Pod and deletes it. `false` if it was gone or leaving already.
pub(crate) async fn disrupt(actor: &Actor, pod: &Pod, cause: Cause, params: DeleteParams) -> Result<bool, kube::Error> {
    let marked = match mark(actor, pod, cause).await {
        Ok(marked) => marked,
        Err(error) if is_gone(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    actor.delete_with(&marked, params).await
}

/// Whether the Pod leaves for this cause.
pub(crate) fn is_target(pod: &Pod, cause: Cause) -> bool {
    let condition = pods::condition(pod, TARGET).filter(|condition| condition.status == "True");
    condition.is_some_and(|condition| condition.reason.as_deref() == Some(cause.reason))
}

async fn mark(actor: &Actor, pod: &Pod, cause: Cause) -> Result<Pod, kube::Error> {
    if is_target(pod, cause) {
        return Ok(pod.clone());
    }
    let mut pod = pod.clone();
    let conditions = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != TARGET);
    conditions.push(PodCondition {
        type_: TARGET.to_owned(),
        status: "True".to_owned(),
        reason: Some(cause.reason.to_owned()),
        message: Some(cause.message.to_owned()),
        last_transition_time: Some(Time(actor.clock.now())),
        ..PodCondition::default()
    });
    actor.replace_status(&pod).await
}
