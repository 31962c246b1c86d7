//! Pods made and deleted for a ReplicaSet.

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::ResourceExt;
use windlass_runtime::Event;

use super::decide::Failure;
use super::kind::Replicated;
use crate::actor::{Actor, message, namespace_leaves};
use crate::template;

/// Makes `count` Pods in batches of 1, 2, 4 …: when the first is refused, the rest is not even tried.
pub(crate) async fn create<K: Replicated>(
    actor: &Actor,
    owner: &K,
    template: &PodTemplateSpec,
    count: usize,
) -> Option<Failure> {
    let pod = template::pod(owner, template);
    let mut left = count;
    let mut batch = 1;
    while left > 0 {
        let size = batch.min(left);
        let results = join_all((0..size).map(|_| actor.create(&pod))).await;
        let mut failure = None;
        for result in results {
            match result {
                Ok(pod) => {
                    actor.tell(owner, Event::normal("SuccessfulCreate", format!("Created pod: {}", pod.name_any())));
                }
                // Nothing is to be done about it, and nobody needs to be told.
                Err(error) if namespace_leaves(&error) => return None,
                Err(error) => failure = Some(failed(actor, owner, "FailedCreate", "creating", &error)),
            }
        }
        if failure.is_some() {
            return failure;
        }
        left -= size;
        batch *= 2;
    }
    None
}

/// Deletes those Pods.
pub(crate) async fn delete<K: Replicated>(actor: &Actor, owner: &K, pods: &[&Pod]) -> Option<Failure> {
    let results = join_all(pods.iter().map(|pod| actor.delete(*pod))).await;
    let mut failure = None;
    for (pod, result) in pods.iter().zip(results) {
        match result {
            Ok(true) => {
                actor.tell(owner, Event::normal("SuccessfulDelete", format!("Deleted pod: {}", pod.name_any())));
            }
            Ok(false) => {}
            Err(error) => failure = Some(failed(actor, owner, "FailedDelete", "deleting", &error)),
        }
    }
    failure
}

fn failed<K: Replicated>(actor: &Actor, owner: &K, reason: &'static str, doing: &str, error: &kube::Error) -> Failure {
    let message = message(error);
    actor.tell(owner, Event::warning(reason, format!("Error {doing}: {message}")));
    Failure { reason, message }
}
