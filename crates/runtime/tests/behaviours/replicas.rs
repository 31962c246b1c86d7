//! What holds of several replicas: two never both act, the next one takes over at once, and they can share the work.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::notes::{Note, PATIENCE, Running, app, edit, eventually, note, write};
use tokio::sync::mpsc;
use windlass::Program;
use windlass::k8s_openapi::api::coordination::v1::Lease;
use windlass::kube::api::{Api, PostParams};
use windlass::prelude::*;
use windlass::serde_json::json;
use windlass_runtime::tap::Intercept;
use windlass_runtime::{Controller, LeaderConfig, Manager, ManagerConfig, ShardConfig};
use windlass_testkit::{TestClock, TestCluster};

/// A long time, for what must not be waited for.
const NEVER: Duration = Duration::from_secs(600);

/// Says which replica looked at what, and who led if it was another.
struct Scribe {
    replica: &'static str,
    leases: Api<Lease>,
    looks: mpsc::UnboundedSender<(&'static str, String)>,
}

impl Reconcile for Scribe {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, _: &Context<Note>) -> Result<Action, Error> {
        let holder = self.leases.get("notes").await?.spec.and_then(|spec| spec.holder_identity);
        let text = match holder {
            Some(holder) if holder == self.replica => note.spec.text.clone(),
            other => format!("{} while {other:?} led", note.spec.text),
        };
        self.looks.send((self.replica, text)).unwrap();
        Ok(Action::Await)
    }
}

fn lease(identity: &str) -> LeaderConfig {
    LeaderConfig {
        identity: identity.into(),
        lease: Duration::from_secs(4),
        renew: Duration::from_secs(3),
        retry: Duration::from_millis(100),
        ..LeaderConfig::new("default", "notes")
    }
}

async fn cluster_with_notes() -> TestCluster {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    write(&cluster.api(), note("n", "first")).await;
    cluster
}

type Looks = mpsc::UnboundedSender<(&'static str, String)>;

fn scribe(cluster: &TestCluster, replica: &'static str, leader: LeaderConfig, looks: Looks) -> Running {
    let config = ManagerConfig { leader: Some(leader), ..ManagerConfig::new("notes") };
    let mut manager = Manager::new(cluster.client(), config);
    manager.add(Controller::of(&manager, Scribe { replica, leases: cluster.api(), looks }));
    Running::start(manager)
}

async fn next(looks: &mut mpsc::UnboundedReceiver<(&'static str, String)>) -> (&'static str, String) {
    tokio::time::timeout(PATIENCE, looks.recv()).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_never_both_act_and_a_shutdown_hands_over_at_once() {
    let cluster = cluster_with_notes().await;
    let (tell, mut looks) = mpsc::unbounded_channel();
    let first = scribe(&cluster, "first", lease("first"), tell.clone());
    assert_eq!(next(&mut looks).await, ("first", "first".into()));
    // The second looks at the lease once, and then only when it is told that it is free.
    let second = scribe(&cluster, "second", LeaderConfig { retry: NEVER, ..lease("second") }, tell);
    second.reports("watch notes.notes.example.com", None).await;
    for text in ["a", "b", "c"] {
        edit(&cluster.api(), "n", json!({"spec": {"text": text}})).await;
        assert_eq!(next(&mut looks).await, ("first", text.into()), "only one of them acts");
    }
    first.end().await;
    assert_eq!(next(&mut looks).await, ("second", "c".into()), "the next one takes over without waiting");
    edit(&cluster.api(), "n", json!({"spec": {"text": "d"}})).await;
    assert_eq!(next(&mut looks).await, ("second", "d".into()));
    assert_eq!(second.metric(r#"leader_election_master_status{name="notes"}"#), Some(1.0));
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_dies_is_replaced_when_its_lease_is_over_and_not_before() {
    let cluster = cluster_with_notes().await;
    let (tell, mut looks) = mpsc::unbounded_channel();
    let first = scribe(&cluster, "first", lease("first"), tell.clone());
    assert_eq!(next(&mut looks).await.0, "first");
    let second = scribe(&cluster, "second", lease("second"), tell);
    second.reports("watch notes.notes.example.com", None).await;
    first.kill().await;
    let died = tokio::time::Instant::now();
    assert_eq!(next(&mut looks).await.0, "second");
    // It had renewed within the last three seconds, or it would have given up; the lease is one of four.
    assert!(died.elapsed() >= Duration::from_secs(1), "after {:?}", died.elapsed());
    second.end().await;
}

/// Lets no call about leases through.
fn no_leases() -> Intercept {
    Arc::new(|call, request, next| {
        if call.resource == "leases" {
            return Box::pin(async { Err("the network is down".into()) });
        }
        next(request)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_renew_writes_nothing_after_its_time_and_ends() {
    let cluster = cluster_with_notes().await;
    let clock = TestClock::frozen("2026-01-01T00:00:00Z");
    let (tell, mut looks) = mpsc::unbounded_channel();
    let config = ManagerConfig { leader: Some(lease("first")), clock: clock.clock(), ..ManagerConfig::new("notes") };
    let mut manager = Manager::new(cluster.client(), config);
    manager.add(Controller::of(&manager, Scribe { replica: "first", leases: cluster.api(), looks: tell }));
    let client = manager.handle().client;
    let running = Running::start(manager);
    assert_eq!(next(&mut looks).await.0, "first");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = |name: &str| ConfigMap { metadata: named(name), ..ConfigMap::default() };
    maps.create(&PostParams::default(), &map("in-time")).await.unwrap();

    running.tap.intercept(Some(no_leases()));
    // As if the process had been frozen: the time is over before anything in it can notice.
    clock.advance(Duration::from_secs(10));
    let refused = maps.create(&PostParams::default(), &map("late")).await.unwrap_err();
    assert!(format!("{refused:?}").contains("Fenced"), "{refused:?}");
    assert!(cluster.api::<ConfigMap>().get_opt("late").await.unwrap().is_none());
    let lost = running.outcome().await.unwrap_err();
    assert_eq!(lost.to_string(), "lost the lease notes: another replica may be at work");
}

/// Who works on which note at present, and who has worked on which text.
#[derive(Default)]
struct Floor {
    at_work: HashMap<String, &'static str>,
    done: Vec<(&'static str, String, String)>,
    clashes: Vec<String>,
}

/// Takes its time, and notices when another replica works on the same note.
struct Sharer {
    replica: &'static str,
    floor: Arc<Mutex<Floor>>,
}

impl Reconcile for Sharer {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, _: &Context<Note>) -> Result<Action, Error> {
        let name = note.name_any();
        {
            let mut floor = self.floor.lock().unwrap();
            if let Some(other) = floor.at_work.insert(name.clone(), self.replica) {
                floor.clashes.push(format!("{name}: {other} and {}", self.replica));
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut floor = self.floor.lock().unwrap();
        floor.at_work.remove(&name);
        floor.done.push((self.replica, name, note.spec.text.clone()));
        Ok(Action::Await)
    }
}

const SHARDS: u32 = 8;
const NOTES: usize = 24;

fn sharer(cluster: &TestCluster, replica: &'static str, floor: &Arc<Mutex<Floor>>) -> Running {
    let shards = ShardConfig { count: SHARDS, lease: lease(replica) };
    let config = ManagerConfig { shards: Some(shards), ..ManagerConfig::new("notes") };
    let mut manager = Manager::new(cluster.client(), config);
    manager.add(Controller::of(&manager, Sharer { replica, floor: floor.clone() }));
    Running::start(manager)
}

fn held(running: &Running) -> f64 {
    running.metric(r#"operator_shards{name="notes"}"#).unwrap_or_default()
}

/// Gives all notes a new text, and waits until each was looked at with it.
async fn all_are_served(cluster: &TestCluster, text: &str, floor: &Arc<Mutex<Floor>>) -> BTreeSet<&'static str> {
    for index in 0..NOTES {
        edit(&cluster.api(), &format!("n-{index}"), json!({"spec": {"text": text}})).await;
    }
    let served = || {
        let floor = floor.lock().unwrap();
        let names: BTreeSet<_> = floor.done.iter().filter(|done| done.2 == text).map(|done| done.1.clone()).collect();
        names.len() == NOTES
    };
    eventually(&format!("all have {text}"), served).await;
    let floor = floor.lock().unwrap();
    floor.done.iter().filter(|done| done.2 == text).map(|done| done.0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_share_the_work_and_hand_it_over_without_both_acting() {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    for index in 0..NOTES {
        write(&cluster.api(), note(&format!("n-{index}"), "zero")).await;
    }
    let floor = Arc::new(Mutex::new(Floor::default()));
    let first = sharer(&cluster, "first", &floor);
    eventually("the first has all", || held(&first) == f64::from(SHARDS)).await;
    assert_eq!(all_are_served(&cluster, "one", &floor).await, BTreeSet::from(["first"]));

    let second = sharer(&cluster, "second", &floor);
    let half = f64::from(SHARDS / 2);
    // While shards move, work goes on.
    all_are_served(&cluster, "two", &floor).await;
    eventually("each has half", || held(&first) == half && held(&second) == half).await;
    assert_eq!(all_are_served(&cluster, "three", &floor).await, BTreeSet::from(["first", "second"]));

    first.end().await;
    all_are_served(&cluster, "four", &floor).await;
    eventually("the second has all", || held(&second) == f64::from(SHARDS)).await;
    assert_eq!(all_are_served(&cluster, "five", &floor).await, BTreeSet::from(["second"]));

    let third = sharer(&cluster, "third", &floor);
    eventually("each has half", || held(&third) == half && held(&second) == half).await;
    second.kill().await;
    eventually("the third has all", || held(&third) == f64::from(SHARDS)).await;
    assert_eq!(all_are_served(&cluster, "six", &floor).await, BTreeSet::from(["third"]));
    third.end().await;
    assert_eq!(floor.lock().unwrap().clashes, [""; 0]);
}
