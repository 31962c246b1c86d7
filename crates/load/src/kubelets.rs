//! Nodes that only seem to run Pods, for clusters that have none: they say that whatever is bound to them runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::connection::{Connection, Target};
use crate::events::Events;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods?fieldSelector=spec.nodeName!%3D";
/// How many statuses are being written.
const IN_FLIGHT: usize = 64;
/// A day: they go on until they are ended.
const PATIENCE: Duration = Duration::from_secs(86_400);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many nodes there are.
    #[arg(long)]
    nodes: usize,
}

/// Registers the nodes, says so in a line, and answers for Pods until the process is ended.
pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let connection = target.connect().await?;
    for index in 0..options.nodes {
        connection.post(NODES, node(index).to_string()).await?;
    }
    println!("{}", json!({"nodes": options.nodes}));
    let (pods, mut events) = Events::list(&connection, PODS).await?;
    let (permits, mut writes, mut seen) = (Arc::new(Semaphore::new(IN_FLIGHT)), JoinSet::new(), HashSet::new());
    let mut waiting = pods;
    loop {
        for pod in waiting.drain(..).filter(|pod| pod["status"]["phase"] == "Pending") {
            let path = format!("/api/v1/namespaces/{}/pods/{}/status", text(&pod, "namespace")?, text(&pod, "name")?);
            if seen.insert(text(&pod, "uid")?.to_owned()) {
                let permit = Arc::clone(&permits).acquire_owned().await?;
                let (connection, body) = (connection.clone(), running(&pod, seen.len()));
                writes.spawn(async move {
                    let _permit = permit;
                    write(&connection, &path, body).await
                });
            }
        }
        while let Some(done) = writes.try_join_next() {
            done??;
        }
        waiting.push(events.object(PATIENCE).await?);
    }
}

async fn write(connection: &Connection, path: &str, body: Value) -> Result<()> {
    let kind = "application/strategic-merge-patch+json";
    connection.send(Method::PATCH, path, kind, body.to_string().into()).await?;
    Ok(())
}

fn text<'a>(pod: &'a Value, field: &str) -> Result<&'a str> {
    pod["metadata"][field].as_str().with_context(|| format!("a Pod has no {field}"))
}

fn node(index: usize) -> Value {
    let name = format!("node-{index}");
    let resources = json!({"cpu": "1000", "memory": "1Ti", "ephemeral-storage": "1Ti", "pods": "10000"});
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "pretends"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [ready]},
    })
}

/// What a kubelet writes once all containers of a Pod run.
fn running(pod: &Value, number: usize) -> Value {
    let now = pod["metadata"]["creationTimestamp"].clone();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"].map(condition);
    let address = format!("10.{}.{}.{}", 1 + number / 65_536, number / 256 % 256, number % 256);
    let containers: Vec<Value> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": container["image"],
                "containerID": format!("pretended://{number}"), "ready": true, "started": true, "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    json!({"status": {
        "phase": "Running", "startTime": now, "hostIP": "10.0.0.1", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": conditions, "containerStatuses": containers,
    }})
}
