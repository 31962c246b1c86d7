//! What holds of progress: order, crashes, retries, changes that come meanwhile, and what is never in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::stage::{Stage, Vault, VaultStatus, build, cluster, plays, ready, remembered, run, run_as, says, vaults};
use crate::notes::eventually;
use tokio::sync::Notify;
use windlass::kube::api::DeleteParams;
use windlass::plan::{Wish, plan};
use windlass::prelude::*;
use windlass::runtime::tap::Intercept;
use windlass::runtime::{LeaderConfig, Namespaces};
use windlass::serde_json::json;
use windlass::{ManifestOptions, Program, names};

#[tokio::test(flavor = "multi_thread")]
async fn handlers_run_in_order_from_the_creation_to_the_deletion() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let running = run(&vaults(&stage), &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    let vault = cluster.api::<Vault>().get("v").await.unwrap();
    assert_eq!(vault.finalizers(), [names::FINALIZER]);
    cluster.patch::<Vault>("v", json!({"spec": {"size": 2}})).await;
    ready(&cluster, "v").await;
    cluster.patch::<Vault>("v", json!({"spec": {"region": "south"}})).await;
    ready(&cluster, "v").await;
    // What is not in the spec is no change.
    cluster.patch::<Vault>("v", json!({"metadata": {"labels": {"a": "b"}}})).await;
    cluster.api::<Vault>().delete("v", &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<Vault>("v").await;
    let moved = r#"move Some("north") "south""#;
    let expected = ["build 1 #1", "open 1 #1", "inspect 2 #1", "inspect 2 #1", moved, "empty 2 #1"];
    assert_eq!(stage.diary(), expected);
    let series = r#"operator_handler_runs_total{controller="vault",handler="inspect",outcome="done"}"#;
    assert_eq!(running.metric(series), Some(2.0));
    running.end().await;
}

/// Loses the writes of progress that `is_lost` chooses.
fn loses(is_lost: impl Fn() -> bool + Send + Sync + 'static) -> Intercept {
    Arc::new(move |call, request, next| {
        let is_progress = call.resource == "vaults" && call.verb == "patch" && call.subresource.is_empty();
        if is_progress && is_lost() {
            return Box::pin(async { Err("the network is down".into()) });
        }
        next(request)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_before_the_success_is_written_down_repeats_that_handler_alone() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let first = run(&vaults(&stage), &cluster);
    let (watched, lost) = (stage.clone(), Arc::new(AtomicUsize::new(0)));
    let count = lost.clone();
    let is_open = move || watched.diary().iter().any(|line| line.starts_with("open"));
    first.tap.intercept(Some(loses(move || is_open() && count.fetch_add(1, Ordering::SeqCst) < 1000)));
    build(&cluster, "v", 1).await;
    eventually("it tries to write it down", || lost.load(Ordering::SeqCst) > 2).await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1"], "the process knows what it has done");
    first.kill().await;

    let second = run(&vaults(&stage), &cluster);
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1", "open 1 #2"]);
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_repeats_nothing_while_the_process_lives() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let running = run(&vaults(&stage), &cluster);
    let (watched, lost) = (stage.clone(), AtomicUsize::new(0));
    let is_built = move || !watched.diary().is_empty();
    running.tap.intercept(Some(loses(move || is_built() && lost.fetch_add(1, Ordering::SeqCst) < 3)));
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_survive_a_restart_with_their_count_and_their_time() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let hour = Duration::from_secs(3600);
    stage.trouble("build", Failure::retry_after(hour, "no bricks"));
    let first = run(&vaults(&stage), &cluster);
    build(&cluster, "v", 1).await;
    assert_eq!(says(&cluster, "v", "Ready", "HandlerRetrying").await, "build: no bricks");
    stage.until("open 1 #1").await;
    cluster.until("v", |vault: &Vault| remembered(vault).contains("due")).await;
    cluster.until_event("v", "HandlerFailed").await;
    first.end().await;

    let second = run(&vaults(&stage), &cluster);
    build(&cluster, "marker", 9).await;
    ready(&cluster, "marker").await;
    assert_eq!(says(&cluster, "v", "Ready", "HandlerRetrying").await, "build: no bricks");
    assert_eq!(stage.diary().iter().filter(|line| line.starts_with("build 1")).count(), 1, "it is not due");
    cluster.clock().advance(hour);
    ready(&cluster, "v").await;
    stage.until("build 1 #2").await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_succeed_waits_for_a_change_and_says_so() {
    let (cluster, stage) = (cluster().await, Stage::default());
    stage.trouble("build", Failure::permanent("size 1 is too small: use 2 or more"));
    let running = run(&vaults(&stage), &cluster);
    build(&cluster, "v", 1).await;
    let message = says(&cluster, "v", "Stalled", "HandlerFailed").await;
    assert!(message.starts_with("build: size 1 is too small: use 2 or more (it is not tried again"), "{message}");
    cluster.until_event("v", "HandlerGaveUp").await;
    cluster.clock().advance(Duration::from_secs(100_000));
    cluster.patch::<Vault>("v", json!({"spec": {"size": 2}})).await;
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1", "build 2 #1", "inspect 2 #1"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_a_failure_of_that_attempt() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let told = stage.clone();
    let app = windlass::handlers::<Vault>("vault-operator").on_create("build", move |_, cx| {
        let stage = told.clone();
        async move {
            assert!(cx.attempt() > 1, "no bricks");
            stage.play(format!("build #{}", cx.attempt())).await
        }
    });
    let running = run(&app, &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["build #2"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_comes_while_a_handler_runs_is_neither_lost_nor_reported_as_done() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let (gate, told, waits) = (Arc::new(Notify::new()), stage.clone(), Arc::new(Notify::new()));
    let (open, arrived) = (gate.clone(), waits.clone());
    let app = windlass::handlers::<Vault>("vault-operator").on_update("inspect", move |vault, _| {
        let (stage, gate, waits) = (told.clone(), open.clone(), arrived.clone());
        async move {
            stage.play(format!("inspect {}", vault.spec.size)).await?;
            waits.notify_one();
            gate.notified().await;
            Ok(())
        }
    });
    let running = run(&app, &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    cluster.patch::<Vault>("v", json!({"spec": {"size": 2}})).await;
    waits.notified().await;
    cluster.patch::<Vault>("v", json!({"spec": {"size": 3}})).await;
    gate.notify_one();
    waits.notified().await;
    let vault = cluster.api::<Vault>().get("v").await.unwrap();
    let observed = vault.status.as_ref().unwrap().conditions.iter().find(|it| it.type_ == "Ready").unwrap().clone();
    assert!(observed.status == "False" || observed.observed_generation < vault.metadata.generation, "{observed:?}");
    gate.notify_one();
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["inspect 2", "inspect 3"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_existed_is_resumed_and_two_replicas_never_run_a_handler_at_the_same_time() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let app = || vaults(&stage).on_resume("greet", plays!(stage, "greet"));
    let lease = |identity: &str| LeaderConfig {
        identity: identity.into(),
        retry: Duration::from_millis(50),
        ..LeaderConfig::new("default", "vaults")
    };
    let clock = || cluster.clock().clock();
    let first = run_as(&app(), &cluster, clock(), Some(lease("first")));
    let second = run_as(&app(), &cluster, clock(), Some(lease("second")));
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    assert_eq!(stage.diary(), ["build 1 #1", "open 1 #1"], "one of them did it, and a new one is not resumed");
    first.end().await;
    cluster.patch::<Vault>("v", json!({"spec": {"size": 2}})).await;
    stage.until("inspect 2 #1").await;
    ready(&cluster, "v").await;
    second.end().await;
    let third = run(&app(), &cluster);
    stage.until("greet 2 #1").await;
    assert_eq!(stage.clashes(), 0, "there is one vault, so at most one handler is at work");
    build(&cluster, "new", 7).await;
    ready(&cluster, "new").await;
    assert!(!stage.diary().iter().any(|line| line.starts_with("greet 7")), "{:?}", stage.diary());
    third.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_what_is_remembered() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let keys = cluster.create::<Secret>(json!({"metadata": {"name": "keys"}, "stringData": {"key": "sesame"}})).await;
    assert_eq!(keys.name_any(), "keys");
    stage.trouble("build", Failure::temporary("the key sesame does not fit"));
    let told = stage.clone();
    let app = vaults(&stage)
        .refers_to::<Secret>(|_| vec!["keys".into()])
        .on_field(
            "lock",
            |spec| spec.password.clone(),
            move |_, password: Changed<Option<String>>, cx| {
                let stage = told.clone();
                async move {
                    assert!(cx.world().get::<Secret>(Some("default"), "keys").is_some());
                    stage.play(format!("lock {:?}", password.old)).await
                }
            },
        )
        .sealed();
    let running = run(&app, &cluster);
    build(&cluster, "v", 1).await;
    cluster.clock().advance(Duration::from_secs(5));
    ready(&cluster, "v").await;
    for password in ["hunter2", "hunter3"] {
        cluster.patch::<Vault>("v", json!({"spec": {"password": password}})).await;
        ready(&cluster, "v").await;
        let text = remembered(&cluster.api::<Vault>().get("v").await.unwrap());
        assert!(text.contains("lock") && text.contains("north"), "{text}");
        assert!(!text.contains("hunter") && !text.contains("sesame"), "{text}");
    }
    assert_eq!(stage.diary().iter().filter(|line| *line == "lock None").count(), 2);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn children_and_status_are_made_by_handlers_and_foreseen_by_a_plan() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let app = vaults(&stage)
        .owns::<ConfigMap>()
        .on_create("furnish", |vault: Arc<Vault>, cx: HandlerContext<Vault>| async move {
            cx.apply(ConfigMap { metadata: named(vault.name_any()), ..ConfigMap::default() }).await?;
            Ok(Report(VaultStatus { address: format!("vault-{}", vault.spec.size) }))
        })
        .plannable();
    let vault = json!({
        "apiVersion": "vaults.example.com/v1", "kind": "Vault", "metadata": {"name": "v"}, "spec": {"size": 1},
    });
    let wish = Wish { apply: vec![vault], field_manager: "me".into(), ..Wish::default() };
    let planned = plan(&app, cluster.client(), Namespaces::all(), &wish).await.unwrap();
    let objects: Vec<_> = planned.changes.iter().map(|change| change.object.as_str()).collect();
    assert!(objects.contains(&"ConfigMap default/v"), "{objects:?}");
    assert!(planned.said.iter().any(|said| said.contains("build would run (Create)")), "{:?}", planned.said);
    assert!(stage.diary().is_empty(), "what may reach beyond the cluster is only named");

    let running = run(&app, &cluster);
    build(&cluster, "v", 1).await;
    ready(&cluster, "v").await;
    let vault = cluster.api::<Vault>().get("v").await.unwrap();
    assert_eq!(vault.status.as_ref().unwrap().address, "vault-1");
    let map = cluster.api::<ConfigMap>().get("v").await.unwrap();
    assert_eq!(map.owner_references()[0].uid, vault.uid().unwrap());
    let manifests = app.manifests(&ManifestOptions::of(&app));
    let kinds: Vec<_> = manifests.iter().filter_map(|manifest| manifest["kind"].as_str()).collect();
    assert!(kinds.contains(&"CustomResourceDefinition") && kinds.contains(&"Deployment"), "{kinds:?}");
    let rules = format!("{:?}", app.rules());
    assert!(rules.contains(r#"resources: Some(["vaults"]), verbs: ["get", "list", "watch", "patch"]"#), "{rules}");
    running.end().await;
}
