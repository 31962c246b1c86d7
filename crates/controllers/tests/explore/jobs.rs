//! Jobs, whose Pods are counted once and only once.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_testkit::Controller;
use windlass_testkit::explore::{Exploration, User, World};

use super::{of, survives};

fn job(name: &str, spec: Value, exit: &str) -> Value {
    let mut all = json!({"template": {"metadata": {"annotations": {"windlass.dev/fake-exit-code": exit}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "one"}]}}});
    spec.as_object().into_iter().flatten().for_each(|(key, value)| all[key] = value.clone());
    json!({"metadata": {"name": name}, "spec": all})
}

/// No Pod is counted twice: there are not more of them than may fail and must succeed.
fn counted(world: &World) -> Result<(), String> {
    for job in world.all::<Job>() {
        let status = job.status.clone().unwrap_or_default();
        let all = status.succeeded.unwrap_or(0) + status.failed.unwrap_or(0);
        let limit = job.spec.as_ref().map_or(0, |spec| spec.completions.unwrap_or(1) + spec.backoff_limit.unwrap_or(6));
        if all > limit + 1 {
            return Err(format!("{all} Pods are counted, which are too many"));
        }
    }
    Ok(())
}

/// Never more Pods at work than are wanted.
fn parallel(world: &World) -> Result<(), String> {
    let is_active = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
        pod.metadata.deletion_timestamp.is_none() && ["Pending", "Running"].contains(&phase)
    };
    let active = world.all::<Pod>().iter().filter(is_active).count();
    if active <= 2 { Ok(()) } else { Err(format!("{active} Pods are at work")) }
}

/// A Pod of a Job that is over is not made again, and one that somebody deletes is one that failed.
fn jobs() -> Exploration {
    of([Controller::Job]).without(["delete", "delete-while-down"]).invariant("counted once", counted)
}

/// Three Pods, two at a time.
async fn completes(user: User) {
    user.create::<Job>(job("three", json!({"completions": 3, "parallelism": 2}), "0")).await;
    user.settle().await;
    user.delete_with::<Job>("three", &DeleteParams::background()).await;
}

#[test]
fn a_job_completes_whatever_happens() {
    survives(&jobs().invariant("two at a time", parallel), completes);
}

/// One that fails twice and is given up.
async fn fails(user: User) {
    user.create::<Job>(job("never", json!({"backoffLimit": 1}), "1")).await;
    user.settle().await;
}

#[test]
fn a_job_fails_whatever_happens() {
    // With a clock that is put back, the wait after a failure takes longer than the user's patience.
    survives(&jobs().without(["back"]), fails);
}

/// Each index has a Pod; the Job rests before it goes on.
async fn indexes(user: User) {
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "suspend": true});
    user.create::<Job>(job("each", spec, "0")).await;
    user.settle().await;
    user.patch::<Job>("each", json!({"spec": {"suspend": false}})).await;
    user.settle().await;
    user.delete_with::<Job>("each", &DeleteParams::background()).await;
}

#[test]
fn an_indexed_job_completes_whatever_happens() {
    survives(&jobs().invariant("two at a time", parallel), indexes);
}
