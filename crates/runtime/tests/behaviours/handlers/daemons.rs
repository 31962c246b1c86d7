//! What holds of timers and daemons.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::stage::{Stage, Vault, build, cluster, plays, ready, remembered, run, says};
use crate::notes::{Running, eventually};
use windlass::Program;
use windlass::kube::api::DeleteParams;
use windlass::prelude::*;
use windlass::runtime::{LeaderConfig, Manager, ManagerConfig, Namespaces, ShardConfig};
use windlass_testkit::TestCluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_runs_when_its_time_has_come_also_after_a_restart() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let hour = Duration::from_secs(3600);
    let app = || windlass::handlers::<Vault>("vault-operator").timer("count", hour, plays!(stage, "count"));
    let first = run(&app(), &cluster);
    build(&cluster, "v", 1).await;
    stage.until("count 1 #1").await;
    ready(&cluster, "v").await;
    first.end().await;

    let second = run(&app(), &cluster);
    build(&cluster, "marker", 9).await;
    stage.until("count 9 #1").await;
    cluster.until("marker", |vault: &Vault| remembered(vault).contains("timers")).await;
    assert_eq!(stage.diary(), ["count 1 #1", "count 9 #1"], "it is not time yet");
    stage.trouble("count", Failure::temporary("lost count"));
    cluster.clock().advance(hour);
    let both_again = || {
        let diary = stage.diary();
        diary.len() == 5 && diary.iter().filter(|line| line.ends_with("#2")).count() == 1
    };
    eventually("both ran, and the one that failed was tried again", both_again).await;
    // Which of the two failed is not said.
    let is_over = |vault: &&Vault| {
        let conditions = vault.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        windlass::condition::find(conditions, "Degraded").is_some_and(|it| it.reason == "Recovered")
    };
    windlass_testkit::until(cluster.api(), |vaults: &[Vault]| vaults.iter().filter(is_over).count() == 1).await;
    second.end().await;
}

/// A daemon that says when it begins and when it ends.
fn watchman(stage: &Stage) -> windlass::App<windlass::Handlers<Vault>> {
    let stage = stage.clone();
    windlass::handlers::<Vault>("vault-operator").daemon("guard", move |_, cx: HandlerContext<Vault>| {
        let stage = stage.clone();
        async move {
            stage.play(format!("guard #{}", cx.attempt())).await?;
            cx.update_status(|status| status.address = format!("guarded {}", cx.attempt()));
            cx.stop().cancelled().await;
            // Whoever is told to end may take a moment, and the resource waits for it.
            let vault = cx.current().map(|vault: Arc<Vault>| vault.finalizers().len());
            stage.play(format!("leaves with {vault:?}")).await
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_begins_anew_when_it_fails_and_has_ended_before_its_resource_goes() {
    let (cluster, stage) = (cluster().await, Stage::default());
    stage.trouble("guard", Failure::retry_after(Duration::from_secs(600), "asleep"));
    let running = run(&watchman(&stage), &cluster);
    build(&cluster, "v", 1).await;
    assert_eq!(says(&cluster, "v", "Degraded", "DaemonFailed").await, "guard: asleep");
    ready(&cluster, "v").await;
    cluster.clock().advance(Duration::from_secs(600));
    stage.until("guard #2").await;
    cluster.until("v", |vault: &Vault| vault.status.as_ref().is_some_and(|it| it.address == "guarded 2")).await;
    cluster.clock().advance(Duration::from_secs(60));
    says(&cluster, "v", "Degraded", "Recovered").await;
    cluster.api::<Vault>().delete("v", &DeleteParams::default()).await.unwrap();
    cluster.until_gone::<Vault>("v").await;
    assert_eq!(stage.diary(), ["guard #1", "guard #2", "leaves with Some(1)"]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stops_lets_its_daemons_end_and_the_next_one_begins_them() {
    let (cluster, stage) = (cluster().await, Stage::default());
    let first = run(&watchman(&stage), &cluster);
    build(&cluster, "v", 1).await;
    stage.until("guard #1").await;
    first.end().await;
    assert_eq!(stage.diary(), ["guard #1", "leaves with Some(1)"]);
    let second = run(&watchman(&stage), &cluster);
    stage.until("guard #1").await;
    second.end().await;
    assert_eq!(stage.diary().len(), 4);
}

/// Who guards which vault at present, and how often two did.
#[derive(Default)]
struct Watch {
    guards: BTreeMap<String, &'static str>,
    clashes: Vec<String>,
}

fn shared(cluster: &TestCluster, replica: &'static str, watch: &Arc<Mutex<Watch>>) -> Running {
    let watch = watch.clone();
    let app = windlass::handlers::<Vault>("vault-operator").daemon("guard", move |vault, cx: HandlerContext<Vault>| {
        let (watch, name) = (watch.clone(), vault.name_any());
        async move {
            if let Some(other) = watch.lock().unwrap().guards.insert(name.clone(), replica) {
                watch.lock().unwrap().clashes.push(format!("{name}: {other} and {replica}"));
            }
            cx.stop().cancelled().await;
            watch.lock().unwrap().guards.remove(&name);
            Ok(())
        }
    });
    let lease = LeaderConfig {
        identity: replica.into(),
        lease: Duration::from_secs(4),
        renew: Duration::from_secs(3),
        retry: Duration::from_millis(100),
        ..LeaderConfig::new("default", "vaults")
    };
    let config = ManagerConfig { shards: Some(ShardConfig { count: 4, lease }), ..ManagerConfig::new(app.name()) };
    let mut manager = Manager::new(cluster.client(), config);
    app.install(&mut manager, Namespaces::all());
    Running::start(manager)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_goes_with_the_shard_of_its_resource_and_never_runs_twice() {
    const VAULTS: usize = 12;
    let (cluster, watch) = (cluster().await, Arc::new(Mutex::new(Watch::default())));
    for index in 0..VAULTS {
        build(&cluster, &format!("v-{index}"), 1).await;
    }
    let by = |replica: &str| watch.lock().unwrap().guards.values().filter(|guard| **guard == replica).count();
    let first = shared(&cluster, "first", &watch);
    eventually("the first guards all", || by("first") == VAULTS).await;
    let second = shared(&cluster, "second", &watch);
    eventually("the second has its share", || by("second") > 0 && by("first") + by("second") == VAULTS).await;
    assert!(by("first") > 0);
    first.end().await;
    eventually("the second guards all", || by("second") == VAULTS).await;
    assert!(watch.lock().unwrap().clashes.is_empty(), "{:?}", watch.lock().unwrap().clashes);
    second.end().await;
    assert!(watch.lock().unwrap().guards.is_empty());
}
