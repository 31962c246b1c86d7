//! What `kube::runtime::Controller` does in situations of this catalogue. Each test documents how that controller is, and is the
//! reason for a test of the same situation that says otherwise of ours; it is no part of the tests, since it may change there
//! at any time. `cargo xtask compare controllers` runs them; a forbidden kind is in `cargo xtask compare operators`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use tokio::sync::mpsc;
use windlass::Program;
use windlass::kube::api::{Api, Patch, PatchParams, PostParams};
use windlass::kube::runtime::controller::Action;
use windlass::kube::runtime::reflector::{self, Store};
use windlass::kube::runtime::{Controller, WatchStreamExt, watcher};
use windlass::kube::{Client, Error, Resource as _};
use windlass::prelude::{ConfigMap, ResourceExt};
use windlass::serde_json::json;
use windlass_runtime::{Manager, ManagerConfig};
use windlass_testkit::TestCluster;

use crate::notes::{Note, PATIENCE, app, edit, eventually, note, write};
use crate::own_writes::stale_config_maps;
use crate::scale::{Traffic, cluster_of_maps};

/// What a run has at hand.
struct Hand {
    client: Client,
    replica: &'static str,
    looks: mpsc::UnboundedSender<(&'static str, String)>,
    maps: Option<Store<ConfigMap>>,
}

type Looks = mpsc::UnboundedReceiver<(&'static str, String)>;

fn hand(client: Client, replica: &'static str) -> (Hand, Looks) {
    let (looks, told) = mpsc::unbounded_channel();
    (Hand { client, replica, looks, maps: None }, told)
}

fn retry(_: Arc<Note>, _: &Error, _: Arc<Hand>) -> Action {
    Action::requeue(Duration::from_millis(100))
}

/// Keeps a note in a ConfigMap, as the operator of the catalogue does.
async fn keep(note: Arc<Note>, hand: Arc<Hand>) -> Result<Action, Error> {
    assert!(note.spec.text != "panic", "the note says so");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": note.spec.text},
        "metadata": {"name": note.name_any(), "ownerReferences": [note.controller_owner_ref(&())]}});
    let maps: Api<ConfigMap> = Api::namespaced(hand.client.clone(), "default");
    maps.patch(&note.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(map)).await?;
    hand.looks.send((hand.replica, note.spec.text.clone())).unwrap();
    Ok(Action::await_change())
}

/// The controller with its owned kind, as its documentation has it.
fn controller(hand: Hand) -> impl Stream<Item = ()> {
    let client = hand.client.clone();
    Controller::new(Api::<Note>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
        .run(keep, retry, Arc::new(hand))
        .map(drop)
}

async fn cluster() -> TestCluster {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    cluster
}

async fn text_is(cluster: &TestCluster, name: &str, text: &str) {
    cluster.until(name, |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["text"] == text)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "documents another controller: cargo xtask compare controllers"]
async fn a_panic_for_one_object_ends_the_controller_for_all() {
    let cluster = cluster().await;
    let (hand, _looks) = hand(cluster.client(), "only");
    let running = tokio::spawn(controller(hand).for_each(async |()| ()));
    write(&cluster.api(), note("good", "hello")).await;
    text_is(&cluster, "good", "hello").await;
    write(&cluster.api(), note("bad", "panic")).await;
    let ended = tokio::time::timeout(PATIENCE, running).await.expect("it ends by itself");
    assert!(ended.unwrap_err().is_panic());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "documents another controller: cargo xtask compare controllers"]
async fn a_child_of_another_version_of_the_kind_wakes_nobody() {
    let cluster = cluster().await;
    let (hand, _looks) = hand(cluster.client(), "only");
    let running = tokio::spawn(controller(hand).for_each(async |()| ()));
    for name in ["n", "other"] {
        write(&cluster.api(), note(name, "hello")).await;
        text_is(&cluster, name, "hello").await;
    }
    let child = cluster.api::<ConfigMap>().get("n").await.unwrap();
    let mut owner = child.metadata.owner_references.unwrap().remove(0);
    owner.api_version = "notes.example.com/v2".into();
    let patch = json!({"metadata": {"ownerReferences": [owner]}, "data": {"text": "changed"}});
    cluster.patch::<ConfigMap>("n", patch).await;
    // Whoever heals the second has seen the first before: both come from one watch.
    for text in ["changed", "changed again"] {
        cluster.patch::<ConfigMap>("other", json!({"data": {"text": text}})).await;
        text_is(&cluster, "other", "hello").await;
    }
    text_is(&cluster, "n", "changed").await;
    running.abort();
}

/// Makes one ConfigMap with a name of chance for each note, if the store has none yet.
async fn make_once(note: Arc<Note>, hand: Arc<Hand>) -> Result<Action, Error> {
    let uid = note.metadata.uid.as_deref().unwrap();
    let is_child = |map: &ConfigMap| map.owner_references().iter().any(|owner| owner.uid == uid);
    if !hand.maps.as_ref().unwrap().state().iter().any(|map| is_child(map)) {
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some("note-".into());
        map.metadata.owner_references = note.controller_owner_ref(&()).map(|owner| vec![owner]);
        Api::namespaced(hand.client.clone(), "default").create(&PostParams::default(), &map).await?;
    }
    hand.looks.send((hand.replica, note.spec.text.clone())).unwrap();
    Ok(Action::await_change())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "documents another controller: cargo xtask compare controllers"]
async fn a_stale_store_leads_to_a_double_create() {
    let cluster = cluster().await;
    let manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    manager.tap().intercept(Some(stale_config_maps()));
    let client = manager.handle().client;
    let (store, writer) = reflector::store();
    let watch = watcher(Api::<ConfigMap>::all(client.clone()), watcher::Config::default());
    let mut events = Box::pin(watch.reflect(writer));
    let watching = tokio::spawn(async move { while events.next().await.is_some() {} });
    store.wait_until_ready().await.unwrap();
    let (hand, mut looks) = hand(client.clone(), "only");
    let hand = Arc::new(Hand { maps: Some(store), ..hand });
    let controller = Controller::new(Api::<Note>::all(client), watcher::Config::default());
    let running = tokio::spawn(controller.run(make_once, retry, hand).for_each(async |_| ()));
    write(&cluster.api(), note("n", "0")).await;
    assert_eq!(looks.recv().await.unwrap().1, "0");
    edit(&cluster.api(), "n", json!({"spec": {"text": "1"}})).await;
    assert_eq!(looks.recv().await.unwrap().1, "1");
    let made = cluster.list::<ConfigMap>().await;
    assert_eq!(made.iter().filter(|map| map.name_any().starts_with("note-")).count(), 2);
    running.abort();
    watching.abort();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "documents another controller: cargo xtask compare controllers"]
async fn two_replicas_both_act() {
    let cluster = cluster().await;
    write(&cluster.api(), note("n", "hello")).await;
    for replica in ["first", "second"] {
        let (hand, mut looks) = hand(cluster.client(), replica);
        let mut results = Box::pin(controller(hand));
        let look = async {
            tokio::select! {
                _ = async { while results.next().await.is_some() {} } => None,
                look = looks.recv() => look,
            }
        };
        let look = tokio::time::timeout(PATIENCE, look).await.expect("each of them acts");
        assert_eq!(look, Some((replica, "hello".to_owned())));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "documents another controller: cargo xtask compare controllers"]
async fn objects_restart_as_a_herd() {
    const OBJECTS: usize = 2_000;
    let cluster = cluster_of_maps(OBJECTS).await;
    let manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let traffic = Traffic::of(&manager);
    let client = manager.handle().client;
    let served = Arc::new(AtomicUsize::new(0));
    let ask = |map: Arc<ConfigMap>, cx: Arc<(Client, Arc<AtomicUsize>)>| async move {
        let maps: Api<ConfigMap> = Api::namespaced(cx.0.clone(), &map.namespace().unwrap());
        maps.get(&map.name_any()).await?;
        cx.1.fetch_add(1, Ordering::SeqCst);
        Ok::<_, Error>(Action::await_change())
    };
    let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), watcher::Config::default());
    let policy = |_: Arc<ConfigMap>, _: &Error, _: Arc<_>| Action::requeue(Duration::from_secs(1));
    let stream = controller.run(ask, policy, Arc::new((client, served.clone())));
    let running = tokio::spawn(stream.for_each(async |_| ()).map(drop));
    eventually("all were asked about", || served.load(Ordering::SeqCst) >= OBJECTS).await;
    let most = traffic.most_at_once.load(Ordering::SeqCst);
    println!("{most} requests at once, unless Controller::with_config says concurrency(n)");
    assert!(most > 32, "{most} requests at once");
    running.abort();
}
