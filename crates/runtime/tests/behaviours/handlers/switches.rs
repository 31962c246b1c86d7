//! What holds of pause, force and restart for handlers.

use super::stage::{Stage, Vault, annotate, build, cluster, ready, run, says, vaults};
use windlass::prelude::*;
use windlass::serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_resource_runs_nothing_and_a_forced_one_runs_its_updates_once() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let running = run(&vaults(&stage), &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    annotate(&cluster, "v", "windlass.dev/paused", "true".into()).await;
    says(&cluster, "v", "Paused", "Paused").await;
    cluster.patch::<Vault>("v", json!({"spec": {"size": 2}})).await;
    says(&cluster, "v", "Paused", "Paused").await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1"]);
    assert_eq!(running.metric(r#"operator_paused_resources{controller="vault"}"#), Some(1.0));

    annotate(&cluster, "v", "windlass.dev/paused", Value::Null).await;
    ready(&cluster, "v").await;
    stage.until("inspect 2 #1").await;
    annotate(&cluster, "v", "windlass.dev/reconcile", "one".into()).await;
    assert_eq!(says(&cluster, "v", "Forced", "Forced").await, "as asked by the value one");
    ready(&cluster, "v").await;
    build(&cluster, "marker", 9).await;
    ready(&cluster, "marker").await;
    let inspected = stage.diary().iter().filter(|line| line.starts_with("inspect 2")).count();
    assert_eq!(inspected, 2, "{:?}", stage.diary());
    assert_eq!(running.metric(r#"operator_switches_total{controller="vault",switch="force"}"#), Some(1.0));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_resource_waits_with_its_deletion() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let running = run(&vaults(&stage), &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    annotate(&cluster, "v", "windlass.dev/paused", "true".into()).await;
    says(&cluster, "v", "Paused", "Paused").await;
    cluster.api::<Vault>().delete("v", &Default::default()).await.unwrap();
    let why = says(&cluster, "v", "DeletionBlocked", "Paused").await;
    assert!(why.contains("windlass.dev/paused"), "{why}");
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1"]);
    annotate(&cluster, "v", "windlass.dev/paused", Value::Null).await;
    cluster.until_gone::<Vault>("v").await;
    assert_eq!(stage.diary().last().map(String::as_str), Some("empty 1 #1"));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_restart_switch_rolls_what_handlers_made() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let app = vaults(&stage).owns::<Deployment>().on_create("serve", |vault, cx| async move {
        let labels = json!({"app": "vault"});
        let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "v", "image": "v"}]}});
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": vault.name_any()},
            "spec": {"selector": {"matchLabels": labels}, "template": pod},
        }))?;
        cx.apply(deployment).await
    });
    let running = run(&app, &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    annotate(&cluster, "v", "kubectl.kubernetes.io/restartedAt", "today".into()).await;
    cluster
        .until("v", |deployment: &Deployment| {
            let template = deployment.spec.as_ref().unwrap().template.metadata.clone().unwrap_or_default();
            template.annotations.is_some_and(|all| all["kubectl.kubernetes.io/restartedAt"] == "today")
        })
        .await;
    says(&cluster, "v", "Restarted", "Restarted").await;
    running.end().await;
}
