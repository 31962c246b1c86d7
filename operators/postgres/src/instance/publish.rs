//! What the cluster is told of a member: the role as a label, which Services follow, and the report as an annotation.

use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use windlass::k8s_openapi::api::core::v1::Pod;
use windlass::kube::api::{Patch, PatchParams};
use windlass::kube::{Api, Client};

use super::Identity;
use super::status::Board;
use crate::names::{self, PRIMARY, REPLICA, REPORT, ROLE};
use crate::wire::{Report, Role};

/// Positions change all the time: they are told this often.
const POSITIONS: Duration = Duration::from_secs(10);
/// After a failure.
const RETRY: Duration = Duration::from_millis(500);
/// An answer of the API is waited for this long.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Tells what `board` has, when it changes, until the process ends.
pub(crate) async fn run(identity: Identity, client: Client, mut board: watch::Receiver<Board>) {
    let pods: Api<Pod> = Api::namespaced(client, &identity.namespace);
    let mut told: Option<(Report, Instant)> = None;
    loop {
        let report = board.borrow_and_update().report.clone();
        let is_known = report.member.is_empty()
            || told.as_ref().is_some_and(|(told, at)| {
                lasting(told) == lasting(&report) && (*told == report || at.elapsed() < POSITIONS)
            });
        if !is_known {
            match tell(&pods, &names::pod(&identity.member), &report).await {
                Ok(()) => told = Some((report, Instant::now())),
                Err(error) => {
                    tracing::warn!(%error, "The cluster was not told how this member is");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            }
        }
        tokio::select! {
            changed = board.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(POSITIONS) => {}
        }
    }
}

/// What is told at once.
fn lasting(report: &Report) -> Report {
    let timeline = report.position.map(|position| crate::wire::Position { lsn: 0, ..position });
    Report { position: timeline, lags: Default::default(), ..report.clone() }
}

async fn tell(pods: &Api<Pod>, pod: &str, report: &Report) -> Result<(), String> {
    let role = match report.role {
        Role::Primary => Some(PRIMARY),
        Role::Replica => Some(REPLICA),
        Role::None => None,
    };
    let text = serde_json::to_string(report).unwrap_or_default();
    patch(pods, pod, &json!({"metadata": {"labels": {ROLE: role}, "annotations": {REPORT: text}}})).await
}

/// No other member is the primary any more: whoever was may not be able to say so.
pub(crate) async fn unname_others(identity: &Identity, client: &Client, members: &[String]) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &identity.namespace);
    let others = members.iter().filter(|member| **member != identity.member);
    let nameless = json!({"metadata": {"labels": {ROLE: null}}});
    let all = others.map(|member| {
        let (pods, nameless, pod) = (&pods, &nameless, names::pod(member));
        async move {
            // Replicas say by themselves what they are.
            let is_named = matches!(pods.get_opt(&pod).await, Ok(Some(it)) if role_of(&it) == Some(PRIMARY));
            if is_named {
                let _ = patch(pods, &pod, nameless).await;
            }
        }
    });
    let _ = tokio::time::timeout(ANSWER_MAX, futures::future::join_all(all)).await;
}

fn role_of(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(ROLE).map(String::as_str)
}

async fn patch(pods: &Api<Pod>, pod: &str, patch: &serde_json::Value) -> Result<(), String> {
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let sent = pods.patch_metadata(pod, &params, &patch);
    match tokio::time::timeout(ANSWER_MAX, sent).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the API does not answer".into()),
    }
}
