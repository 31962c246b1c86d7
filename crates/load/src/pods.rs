//! Deployments, and how long their Pods take until they run.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::connection::{Connection, Target};
use crate::events::Events;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods?labelSelector=load";
/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many Deployments are made.
    #[arg(long)]
    deployments: usize,
    /// How many Pods each has.
    #[arg(long)]
    replicas: usize,
    /// The image of the Pods.
    #[arg(long, default_value = "registry.example.com/load/pod:1.2.3")]
    image: String,
    /// The command of the Pods, if not the image's.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Makes the Deployments and waits until every Pod is ready and every Deployment says so.
pub(crate) async fn run(target: &Target, options: &Options) -> Result<Value> {
    let connection = target.connect().await?;
    let (_, pods) = Events::list(&connection, PODS).await?;
    let (_, deployments) = Events::list(&connection, DEPLOYMENTS).await?;
    let wanted = options.deployments * options.replicas;
    let begin = Instant::now();
    let ready = tokio::spawn(until(pods, wanted, begin, is_ready));
    let available = tokio::spawn(until(deployments, options.deployments, begin, is_available));
    for index in 0..options.deployments {
        create(&connection, options, index).await?;
    }
    let made_s = begin.elapsed().as_secs_f64();
    let times = ready.await?.with_context(|| format!("waiting for {wanted} Pods"))?;
    let available = available.await?.context("waiting for the Deployments")?;
    let (first, last) = (times.first().copied().unwrap_or_default(), times.last().copied().unwrap_or_default());
    let available_s = available.last().copied().unwrap_or_default();
    Ok(json!({
        "made_s": made_s, "first_s": first, "all_ready_s": last, "all_available_s": available_s,
        "per_s": wanted as f64 / last,
    }))
}

async fn create(connection: &Connection, options: &Options, index: usize) -> Result<()> {
    let labels = json!({"load": format!("load-{index}")});
    let mut container = json!({"name": "main", "image": options.image});
    if !options.command.is_empty() {
        container["command"] = json!(options.command);
    }
    let template = json!({
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("load-{index}")},
        "spec": {"replicas": options.replicas, "selector": {"matchLabels": labels}, "template": template},
    });
    connection.post(DEPLOYMENTS, deployment.to_string()).await?;
    Ok(())
}

/// The seconds from `begin` at which each of `count` objects was first as `done` wants it.
async fn until(mut events: Events, count: usize, begin: Instant, done: fn(&Value) -> bool) -> Result<Vec<f64>> {
    let (mut times, mut seen) = (Vec::with_capacity(count), HashSet::new());
    while times.len() < count {
        let reached = times.len();
        let object = events.object(PATIENCE).await.with_context(|| format!("{reached} of {count} are ready"))?;
        if done(&object) && seen.insert(object["metadata"]["name"].as_str().unwrap_or_default().to_owned()) {
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    Ok(times)
}

/// Whether a Pod runs and is ready.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    pod["status"]["phase"] == "Running"
        && conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether a Deployment says that all its Pods are available.
fn is_available(deployment: &Value) -> bool {
    deployment["status"]["availableReplicas"] == deployment["spec"]["replicas"]
}
