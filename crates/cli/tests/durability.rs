//! kill -9 in the middle of a storm of writes, again and again: what was acknowledged is there, what was not is there
//! as a whole or not at all, and a watch goes on without a gap or is told that it cannot.
//!
//! `WINDLASS_ROUNDS` says how often; `cargo xtask soak durability` asks for hundreds.

mod support;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectList, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Config, config::Kubeconfig};
use serde_json::json;
use support::TestCluster;

const ROUNDS_DEFAULT: u32 = 4;
const WRITERS: usize = 8;
/// Objects that each writer creates, changes and deletes in turn.
const NAMES: u32 = 20;
/// Written into every object, so that a write torn in two would show.
const FILLER: usize = 3_000;

/// What a writer knows of one name: the numbers that its object may hold; 0 stands for no object.
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: u32,
    /// What was asked for and not answered before the server died.
    doubtful: Option<u32>,
}

type Ledger = BTreeMap<String, Known>;

fn rounds() -> u32 {
    std::env::var("WINDLASS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS_DEFAULT)
}

async fn connect(cluster: &TestCluster) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(cluster.state().join("kubeconfig")).expect("up wrote a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.expect("the kubeconfig is whole");
    Api::default_namespaced(Client::try_from(config).expect("the kubeconfig can be used"))
}

fn content(number: u32) -> serde_json::Value {
    json!({ "number": number.to_string(), "filler": number.to_string().repeat(FILLER / 4), "end": number.to_string() })
}

/// The number that an object holds, which must be the same in all its parts.
fn number(object: &ConfigMap) -> u32 {
    let data = object.data.clone().unwrap_or_default();
    let number: u32 = data["number"].parse().expect("a number was written");
    assert_eq!(serde_json::to_value(&data).expect("text"), content(number), "half a write");
    number
}

/// Makes the object of `name` hold the next number, by whichever verb is its turn, and gives that number.
async fn step(api: &Api<ConfigMap>, name: &str, now: u32, next: u32) -> Result<u32, kube::Error> {
    let object = json!({ "metadata": { "name": name }, "data": content(next) });
    if now == 0 {
        let object: ConfigMap = serde_json::from_value(object).expect("a ConfigMap");
        api.create(&PostParams::default(), &object).await?;
        return Ok(next);
    }
    if next.is_multiple_of(5) {
        api.delete(name, &DeleteParams::default()).await?;
        return Ok(0);
    }
    api.patch(name, &PatchParams::default(), &Patch::Merge(object)).await?;
    Ok(next)
}

/// Writes until the server is gone and gives how many writes were acknowledged.
async fn storm(api: Api<ConfigMap>, ledger: Arc<Mutex<Ledger>>, writer: usize, first: u32) -> u32 {
    let mut count = 0;
    for next in first.. {
        let name = format!("w{writer}-{}", next % NAMES);
        let now = ledger.lock().expect("no writer panics").get(&name).map_or(0, |known| known.acknowledged);
        let outcome = if now != 0 && next.is_multiple_of(5) { 0 } else { next };
        let set = |known: Known| ledger.lock().expect("no writer panics").insert(name.clone(), known);
        set(Known { acknowledged: now, doubtful: Some(outcome) });
        match step(&api, &name, now, next).await {
            Ok(stored) => set(Known { acknowledged: stored, doubtful: None }),
            Err(kube::Error::Api(status)) => panic!("{name}: {status}"),
            Err(_) => return count,
        };
        count += 1;
    }
    count
}

/// Follows the watch until the server is gone; the last revision and what the objects were then.
async fn follow(api: Api<ConfigMap>, list: ObjectList<ConfigMap>) -> (String, BTreeMap<String, u32>) {
    let mut revision = list.metadata.resource_version.expect("a list has a revision");
    let mut seen = holdings(&list.items);
    let Ok(stream) = api.watch(&WatchParams::default(), &revision).await else { return (revision, seen) };
    let mut stream = std::pin::pin!(stream);
    while let Ok(Some(event)) = stream.try_next().await {
        let object = match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => object,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => panic!("{status}"),
        };
        let new = object.metadata.resource_version.clone().expect("an event has a revision");
        let order = |text: &str| text.parse::<u64>().expect("a revision is a number");
        assert!(order(&new) > order(&revision), "{new} after {revision}");
        revision = new;
        note(&mut seen, &event);
    }
    (revision, seen)
}

fn holdings(items: &[ConfigMap]) -> BTreeMap<String, u32> {
    let ours = items.iter().filter(|item| item.metadata.name.as_deref().is_some_and(|name| name.starts_with('w')));
    ours.map(|item| (item.metadata.name.clone().expect("a name"), number(item))).collect()
}

fn note(seen: &mut BTreeMap<String, u32>, event: &WatchEvent<ConfigMap>) {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            seen.extend(holdings(std::slice::from_ref(object)));
        }
        WatchEvent::Deleted(object) => {
            seen.remove(object.metadata.name.as_deref().unwrap_or_default());
        }
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
    }
}

/// Resumes a watch on the new server: it must say that the past is gone, or bring `seen` to what is there now.
async fn resume(api: &Api<ConfigMap>, revision: &str, mut seen: BTreeMap<String, u32>, now: &BTreeMap<String, u32>) {
    let limit = WatchParams::default().timeout(1);
    let gone = |status: &kube::core::Status| status.code == 410;
    let stream = match api.watch(&limit, revision).await {
        Ok(stream) => stream,
        Err(kube::Error::Api(status)) if gone(&status) => return,
        Err(error) => panic!("{error}"),
    };
    let mut stream = std::pin::pin!(stream);
    while let Some(event) = stream.try_next().await.expect("the server is up") {
        if let WatchEvent::Error(status) = &event {
            assert!(gone(status), "{status:?}");
            return;
        }
        note(&mut seen, &event);
    }
    assert_eq!(&seen, now, "the resumed watch left a gap");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_survive_kill_9_at_any_moment() {
    let cluster = TestCluster::new();
    let ledger = Arc::new(Mutex::new(Ledger::new()));
    let mut acknowledged = 0;
    cluster.start(&["--profile", "bare"]);
    for round in 0..rounds() {
        let api = connect(&cluster).await;
        let first = round * 1_000_000 + 1;
        let list = api.list(&ListParams::default()).await.expect("the server is up");
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(storm(api.clone(), Arc::clone(&ledger), writer, first))).collect();
        let watcher = tokio::spawn(follow(api.clone(), list));
        // Not to wait for something: the moment of the kill is what varies.
        tokio::time::sleep(Duration::from_millis(40 + u64::from(round) * 37 % 400)).await;
        let pid = cluster.server_pid().to_string();
        support::success(Command::new("kill").args(["-9", &pid]));
        for writer in writers {
            acknowledged += writer.await.expect("a write is refused only because the server is gone");
        }
        let (revision, seen) = watcher.await.expect("the watch is in order");

        cluster.start(&["--profile", "bare"]);
        let api = connect(&cluster).await;
        let list = api.list(&ListParams::default()).await.expect("the server is up").items;
        let now = holdings(&list);
        resume(&api, &revision, seen, &now).await;
        for (name, known) in ledger.lock().expect("no writer panics").iter_mut() {
            let found = now.get(name).copied().unwrap_or(0);
            let possible = found == known.acknowledged || Some(found) == known.doubtful;
            assert!(possible, "round {round}: {name} holds {found}, known is {known:?}");
            *known = Known { acknowledged: found, doubtful: None };
        }
    }
    println!("{} rounds, {acknowledged} acknowledged writes, none lost", rounds());
    assert!(acknowledged > 0, "no write was acknowledged, so nothing was shown");
}
